package term

import (
	"strings"
	"testing"
)

func TestFold_BreaksWideLinesOnly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"narrow lines are unchanged", "one\n  two   three\n", "one\n  two   three\n"},
		{"prose", "a wait of ten minutes makes a gap of five sufficient\n", "a wait of ten minutes makes a gap of\n  five sufficient\n"},
		{"last cell", "  etl      4  0 of 2 nodes: 2 lack cpu, 1 memory\n", "  etl      4  0 of 2 nodes: 2 lack cpu,\n              1 memory\n"},
		{"cell without columns left", "  a cell of words  another  last cell of this row\n", "  a cell of words  another\n      last cell of this row\n"},
		{"unbreakable", "digest  sha256:012345678901234567890123456789\n", "digest  sha256:012345678901234567890123456789\n"},
		{"styles have no width", "\x1b[1mNAME\x1b[0m  VALUE OF THIRTY-FOUR COLUMNS HERE\n", "\x1b[1mNAME\x1b[0m  VALUE OF THIRTY-FOUR COLUMNS HERE\n"},
		{"command", "  cede job plan web.yaml -t '{{.PlanToken}}' > plan.token\n", "  cede job plan web.yaml -t '{{.PlanToken}}' > plan.token\n"},
		{"command with its explanation", "  cede job run FILE  submits the job of the file\n", "  cede job run FILE\n      submits the job of the file\n"},
		{"prose about cede", "cede stores the state of the cluster on disk\n", "cede stores the state of the cluster on\n  disk\n"},
		{"no end of line", strings.Repeat("ab ", 14) + "ab", strings.Repeat("ab ", 12) + "ab\n  ab ab"},
	} {
		if got := Fold(test.text, 40); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// Wide characters fill a line with half as many.
func TestFold_CountsWideCharacters(t *testing.T) {
	word := "\u6771\u4eac"
	if got, want := Fold(word+" "+word+" "+word, 10), word+" "+word+"\n  "+word; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReflow_FillsWideParagraphs(t *testing.T) {
	t.Parallel()
	text := "A paragraph of two lines that\nis wider than thirty columns here.\n\nShort.\nLines.\n\n  an indented line of some example\n"
	want := "A paragraph of two lines that\nis wider than thirty columns\nhere.\n\nShort.\nLines.\n\n  an indented line of some\n    example\n"
	if got := Reflow(text, 30); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFoldWriter_FoldsLinesOfSeveralWrites(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := NewFoldWriter(&b, 10)
	for _, part := range []string{"one two ", "three four\nfi", "ve six seven"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "one two\n  three\n  four\nfive six\n  seven"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
