package sim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Each file is one case of kube-scheduler's preemption, or an extension by cede. Its
// comment describes the case, and its expectations are checked.
func TestKubernetes_Cases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/kubernetes/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	table, err := os.ReadFile("testdata/kubernetes/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			if !strings.Contains(string(table), "("+filepath.Base(name)+")") {
				t.Error("missing in the table of README.md")
			}
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			f, err := scenario.Decode(name, file)
			if err != nil {
				t.Fatal(err)
			}
			if f.Expect == nil {
				t.Fatal("missing expectations")
			}
			run := play(t, f, sim.Options{})
			for _, d := range sim.CheckExpect(f, run.Result) {
				t.Error(d)
			}
			if t.Failed() {
				t.Log(detailedTranscript(run.Result))
			}
		})
	}
}
