package policy

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"
)

// readmeTable returns the rows of the table below a heading of the bundle's README.
func readmeTable(t *testing.T, heading string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(bundleDir, "README.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) > 2 {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells[1:len(cells)-1])
		}
	}
	require.Greater(t, len(rows), 2, heading)
	return rows[2:]
}

// ticked are the words in backticks.
func ticked(cell string) []string {
	var words []string
	for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(cell, -1) {
		words = append(words, m[1])
	}
	return words
}

// leaves are the fields of a point's input that are no objects of fields.
func leaves(p Point) []string {
	fields := pathsOf(p).fields
	var all []string
	for path := range fields {
		inner := slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(other string) bool {
			return path == "" || strings.HasPrefix(other, path+".")
		})
		if !inner {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

// The README names every field of every point's input, with its words, and no other.
func TestReadmeInputs(t *testing.T) {
	letters := map[string]Point{"A": PointAdmission, "F": PointFailure, "S": PointSubstitution, "R": PointReplay}
	told := map[Point][]string{}
	for _, row := range readmeTable(t, "Inputs") {
		path := strings.Trim(row[0], "`")
		for _, letter := range strings.Fields(row[1]) {
			p, known := letters[letter]
			require.True(t, known, row)
			told[p] = append(told[p], path)
		}
		if few := enums()[path]; few != nil {
			require.ElementsMatch(t, few, ticked(row[2]), path)
		}
	}
	for p := range points {
		slices.Sort(told[p])
		require.Equal(t, leaves(p), told[p], p)
	}
	var root schemaNode
	require.NoError(t, json.Unmarshal(schemaText(inputSchema), &root))
	for _, row := range readmeTable(t, "Inputs") {
		for _, name := range []string{"requires", "quality_gates"} {
			if row[0] == "`alias."+name+"`" {
				require.ElementsMatch(t, slices.Collect(maps.Keys(root.Properties["alias"].Properties[name].Properties)), ticked(row[3]), name)
			}
		}
	}
}

// … every field of every output, with its words, and whether it may be left out.
func TestReadmeOutputs(t *testing.T) {
	told := map[string]bool{}
	for _, row := range readmeTable(t, "Outputs") {
		fields := ticked(row[1])
		require.Len(t, fields, 1, row)
		told[row[0]+" "+fields[0]] = true
		var schema struct {
			Required   []string               `json:"required"`
			Properties map[string]*schemaNode `json:"properties"`
		}
		require.NoError(t, json.Unmarshal(schemaText(row[0]), &schema))
		require.Equal(t, !slices.Contains(schema.Required, fields[0]), strings.Contains(row[1], "(optional)"), row)
		field := schema.Properties[fields[0]]
		require.NotNil(t, field, row)
		words := field.Enum
		if field.Items != nil {
			words = field.Items.Enum
		}
		require.ElementsMatch(t, words, ticked(row[2]), row)
	}
	for p := range points {
		var schema schemaNode
		require.NoError(t, json.Unmarshal(schemaText(p.String()), &schema))
		for field := range schema.Properties {
			require.True(t, told[p.String()+" "+field], "%s %s", p, field)
			delete(told, p.String()+" "+field)
		}
	}
	require.Empty(t, told, "fields that no decision has")
}

// … and every reason and rule id that the default bundle gives.
func TestReadmeRules(t *testing.T) {
	told := map[string]bool{}
	pkg, rows := "", readmeTable(t, "Rules")
	packages := map[string]bool{}
	for _, row := range rows {
		if row[0] != "" {
			pkg = strings.Trim(row[0], "`")
			packages[pkg] = true
		}
		for _, rule := range ticked(row[1]) {
			told[pkg+" rule "+rule] = true
		}
		for _, reason := range ticked(row[2]) {
			told[pkg+" reason "+reason] = true
		}
	}

	given := map[string]bool{}
	found := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(bundleDir, "interlock", "*.rego"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.rego") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		module := ast.MustParseModule(string(text))
		pkg := strings.TrimPrefix(module.Package.Path.String(), "data.")
		found[pkg] = true
		ast.WalkTerms(module, func(term *ast.Term) bool {
			// An act in the order of replay is its place, the action and the reason.
			if act, ok := term.Value.(*ast.Array); ok && act.Len() == 3 {
				_, placed := act.Elem(0).Value.(ast.Number)
				reason, isString := act.Elem(2).Value.(ast.String)
				if placed && isString {
					given[pkg+" reason "+string(reason)] = true
				}
			}
			object, ok := term.Value.(ast.Object)
			if !ok {
				return false
			}
			object.Foreach(func(name, value *ast.Term) {
				word, isString := value.Value.(ast.String)
				field, _ := name.Value.(ast.String)
				switch {
				case !isString:
				case field == "reason":
					given[pkg+" reason "+string(word)] = true
					if pkg == "interlock.failure" { // its rule ids are made of the reasons
						given[pkg+" rule failure."+string(word)] = true
					}
				case field == "rule":
					given[pkg+" rule "+string(word)] = true
				case field == "of": // an exception's origin, of which replay makes a rule id
					given["interlock.replay rule overrides."+string(word)+".CLASS.PHASE"] = true
				}
			})
			return false
		})
	}
	given["interlock.replay rule matrix.CLASS.PHASE"] = true
	require.Equal(t, slices.Sorted(maps.Keys(given)), slices.Sorted(maps.Keys(told)))
	require.Equal(t, slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(packages)))

	// What is made of parts has these forms.
	in := openInput(1, 1, true)
	d, meta := builtin(t).Replay(testContext(t), &in)
	require.NoError(t, meta.Err)
	require.Equal(t, "matrix."+in.Failure.Class.String()+"."+in.Failure.Phase.String(), d.Rule)
}
