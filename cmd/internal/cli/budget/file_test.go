package budget

import (
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// What a server would refuse one budget after the other is reported at once, with lines.
func TestReadBudgets_ReportsAllProblems(t *testing.T) {
	t.Parallel()
	_, err := readBudgets("b.yaml", []byte("- {name: a/b, labels: {app: web}, minAvailable: 1}\n- name: c\n  namespace: d e\n  labels: {\"\": web}\n  minAvailable: 1\n"))
	want := []string{
		`b.yaml:1: name "a/b" must have 1 to 256 bytes, without spaces, slashes or asterisks; choose another name`,
		`b.yaml:3: namespace "d e" must have 1 to 256 bytes, without spaces, slashes or asterisks; choose another name`,
		"b.yaml:4: a label must have a key, and at most 256 bytes; choose another label",
	}
	if got := cmdutil.AsError(err).Lines; !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
