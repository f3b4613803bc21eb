package policy

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Most activations change data and no rule: one cell of a table. What was made of the rules
// before is used again then: a file's syntax tree for an equal file of that name, and the compiler
// for the same trees. Neither is changed by anybody: compiling copies the trees, and data is none
// of a compiler's concern.

// Bounds of what is remembered in a process.
const (
	maxTrees     = 256
	maxTreeBytes = 4 << 20 // of their texts
	keptRuleSets = 3       // what is in force, a candidate, and one that is being looked at
)

var memory struct {
	sync.Mutex
	trees map[treeKey]*ast.Module
	bytes int
	sets  []*ruleSet // the latest first
}

type treeKey struct {
	name string
	sum  [sha256.Size]byte
}

// ruleSet is rules that compiled and have no fault that can be found without data. Immutable.
type ruleSet struct {
	modules  map[string]*ast.Module // as they were parsed
	grants   string
	compiler *ast.Compiler
	reach    [points]*reach
}

// parsed returns the module of a file, which must not be changed.
func parsed(name string, text []byte, options ast.ParserOptions) (*ast.Module, error) {
	key := treeKey{name, sha256.Sum256(text)}
	memory.Lock()
	module := memory.trees[key]
	memory.Unlock()
	if module != nil {
		return module, nil
	}
	module, err := ast.ParseModuleWithOpts(name, string(text), options)
	if err != nil || module == nil {
		return module, err
	}
	memory.Lock()
	defer memory.Unlock()
	if len(memory.trees) >= maxTrees || memory.bytes+len(text) > maxTreeBytes || memory.trees == nil {
		memory.trees, memory.bytes = map[treeKey]*ast.Module{}, 0
	}
	if len(text) <= maxTreeBytes && memory.trees[key] == nil {
		memory.trees[key] = module
		memory.bytes += len(text)
	}
	return module, nil
}

func grantsText(grants []string) string {
	return strings.Join(slices.Sorted(slices.Values(grants)), " ")
}

// knownRules returns the rules that were made of those modules, or nil.
func knownRules(modules map[string]*ast.Module, grants []string) *ruleSet {
	text := grantsText(grants)
	memory.Lock()
	defer memory.Unlock()
	i := slices.IndexFunc(memory.sets, func(s *ruleSet) bool { return s.grants == text && maps.Equal(s.modules, modules) })
	if i < 0 {
		return nil
	}
	found := memory.sets[i]
	memory.sets = slices.Insert(slices.Delete(memory.sets, i, i+1), 0, found)
	return found
}

func rememberRules(s *ruleSet) {
	memory.Lock()
	defer memory.Unlock()
	if memory.sets = slices.Insert(memory.sets, 0, s); len(memory.sets) > keptRuleSets {
		memory.sets = memory.sets[:keptRuleSets]
	}
}

// forget makes the next activation a first one, for tests and measurements.
func forget() {
	memory.Lock()
	defer memory.Unlock()
	memory.trees, memory.bytes, memory.sets = nil, 0, nil
}
