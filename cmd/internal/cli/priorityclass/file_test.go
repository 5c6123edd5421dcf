package priorityclass

import (
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// What a server would refuse one class after the other is reported at once, with lines.
func TestReadClasses_ReportsAllProblems(t *testing.T) {
	t.Parallel()
	_, err := readClasses("classes.yaml", []byte(`- {name: a b, value: 10, globalDefault: true}
- name: high
  value: 1000000001
  globalDefault: true
- {name: system-mine, value: 1}
- name: system-node-critical
  value: 5
  preemptionPolicy: Never
- {name: low, valeu: 1}
`))
	want := []string{
		"classes.yaml:1: name must not be empty or contain spaces or slashes; choose another name",
		"classes.yaml:3: value: 1000000001 is above 1000000000, the most that a class may have; write at most 1000000000; system-cluster-critical and system-node-critical are above it",
		"classes.yaml:4: globalDefault: the global default is already a b; omit it here",
		`classes.yaml:5: name: "system-mine" is reserved, as is every name that begins with system-; choose another name`,
		"classes.yaml:7: value: system-node-critical is 2000001000 always, not 5; write 2000001000, or leave the class out: it is there without being declared",
		"classes.yaml:8: preemptionPolicy: system-node-critical always preempts lower priorities; remove preemptionPolicy",
		"classes.yaml:9: unknown field \"valeu\"; did you mean value?",
		"classes.yaml:9: value is required: an integer, where higher means more important",
	}
	if got := cmdutil.AsError(err).Lines; !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
