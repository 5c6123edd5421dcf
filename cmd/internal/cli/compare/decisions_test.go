package compare

import (
	"os"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// Decisions about bindings are compared by their clusters, victims and numbers of replicas.
func TestCompare_ListsDecisionsAboutBindings(t *testing.T) {
	file, err := os.ReadFile("../../../../examples/binding-sizes/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := clitest.New(map[string]string{"s.yaml": string(file)})
	exit := compareCommand(t.Context(), w, "s.yaml", "-p", "karmada", "-p", "karmada?victims=fewest", "-p", "karmada?elastic=true")
	if exit != cmdutil.ExitOK {
		t.Fatalf("exit %d:\n%s", exit, &w.Err)
	}
	for _, want := range []string{
		"release: on the same clusters karmada?victims=fewest evicts render ×5 instead of index ×2, mail ×2",
		"on eu ×4, evicts render ×5",
	} {
		if !strings.Contains(w.Out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &w.Out)
		}
	}
}
