package namespace

import (
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// What a server would refuse one namespace after the other is reported at once, with lines.
func TestReadNamespaces_ReportsAllProblems(t *testing.T) {
	t.Parallel()
	_, err := readNamespaces("n.yaml", []byte("- {name: a b}\n- name: c\n  description: "+strings.Repeat("x", 300)+"\n- {name: d, weight: -1}\n"))
	want := []string{
		`n.yaml:1: invalid name "a b": expected 1 to 128 letters, digits, ., _ and -; choose another name`,
		"n.yaml:3: description of 300 bytes: expected at most 256; write a shorter description",
		`n.yaml:4: weight: invalid value "-1": expected a positive number; omit it for the default`,
	}
	if got := cmdutil.AsError(err).Lines; !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
