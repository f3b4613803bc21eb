package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A spreadsheet runs a cell that begins like a formula; no text of a caller's or a provider's
// becomes one, and none breaks a line or a terminal.
func TestCellsAreInert(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"plain text, \"quoted\"":       "plain text, \"quoted\"",
		"a=b+c-d@e":                    "a=b+c-d@e",
		"=HYPERLINK(\"http://x\")":     "'=HYPERLINK(\"http://x\")",
		"+1+cmd|' /C calc'!A0":         "'+1+cmd|' /C calc'!A0",
		"-2+3":                         "'-2+3",
		"@SUM(A1)":                     "'@SUM(A1)",
		"  =1+1":                       "'  =1+1",
		"\t=1+1":                       "' =1+1",
		"\r\n@x":                       "'  @x",
		"＝1+1":                         "'＝1+1",
		"a\nb\x00c\x1b[31md\x7f\u0085": "a b c [31md  ",
		"a\u2028b\u202ec":              "a b c",
		"not\xffUTF-8":                 "not\ufffdUTF-8",
		"-1.5":                         "-1.5",
		"-0.0000001":                   "-0.0000001",
		"日本":                           "日本",
	} {
		require.Equal(t, want, cell(text), "%q", text)
	}
	same := "req_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = cell(same) }))
}
