package sim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// What kube-scheduler's preemption does, case by case, and where cede goes beyond:
// each file says what it shows and what it expects.
func TestKubernetes_Cases(t *testing.T) {
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
				t.Error("the table does not have it")
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
				t.Fatal("it expects nothing")
			}
			run := play(t, f, sim.Options{})
			for _, d := range sim.CheckExpect(f, run.Result) {
				t.Error(d)
			}
			if t.Failed() {
				t.Log(tale(run.Result))
			}
		})
	}
}
