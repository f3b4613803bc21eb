package tool

import (
	"encoding/xml"
	"fmt"
	"io"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string    `xml:"name,attr"`
	Class   string    `xml:"classname,attr"`
	File    string    `xml:"file,attr"`
	Line    int       `xml:"line,attr"`
	Time    string    `xml:"time,attr"`
	Skipped *struct{} `xml:"skipped"`
	Failure *junitText
	Output  *junitText
}

type junitText struct {
	XMLName xml.Name
	Message string `xml:"message,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes tests as JUnit's XML, which continuous integration reads: a suite for each
// package.
func JUnit(w io.Writer, r *policy.Rehearsal) error {
	var all junitSuites
	at := map[string]int{}
	took := map[string]float64{}
	for i := range r.Tests {
		t := &r.Tests[i]
		n, there := at[t.Package]
		if !there {
			n = len(all.Suites)
			at[t.Package] = n
			all.Suites = append(all.Suites, junitSuite{Name: t.Package})
		}
		s := &all.Suites[n]
		c := junitCase{Name: t.Name, Class: t.Package, File: t.File, Line: t.Line, Time: seconds(t.Took.Seconds())}
		s.Tests++
		took[t.Package] += t.Took.Seconds()
		switch {
		case t.Skipped:
			s.Skipped++
			c.Skipped = &struct{}{}
		case t.Failed():
			s.Failures++
			c.Failure = &junitText{XMLName: xml.Name{Local: "failure"}, Message: t.Wrong, Text: t.Wrong}
		}
		if t.Output != "" {
			c.Output = &junitText{XMLName: xml.Name{Local: "system-out"}, Text: t.Output}
		}
		s.Cases = append(s.Cases, c)
	}
	for i := range all.Suites {
		all.Suites[i].Time = seconds(took[all.Suites[i].Name])
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(s float64) string { return fmt.Sprintf("%.6f", s) }
