package jobspec

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
)

// For any input, Load does not panic, and returns problems with positions if it
// fails. A job that it accepts either fails to convert with problems, or is equal
// after the conversion to the model and back.

func FuzzHCL(f *testing.F)  { fuzz(f, "f.hcl") }
func FuzzYAML(f *testing.F) { fuzz(f, "f.yaml") }
func FuzzJSON(f *testing.F) { fuzz(f, "f.json") }

func fuzz(f *testing.F, name string) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		file, err := Load(name, src, Options{})
		if err != nil {
			checkProblems(t, err)
			return
		}
		m, err := file.Model()
		if err != nil {
			checkProblems(t, err)
			return
		}
		again, err := ToModel(FromModel(m))
		if err != nil {
			t.Fatalf("%v\n%+v", err, m)
		}
		if diff := cmp.Diff(m, again, sameModel); diff != "" {
			t.Fatal(diff)
		}
	})
}

func checkProblems(t *testing.T, err error) {
	var problems Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("%T without problems: %v", err, err)
	}
	for i, p := range problems {
		if p.Line < 1 || p.Column < 1 || p.Message == "" || p.Remedy == "" {
			t.Fatalf("problem %d is incomplete: %+v", i, p)
		}
		if i > 0 && p.Line < problems[i-1].Line {
			t.Fatalf("problem %d is out of order: %v", i, problems)
		}
	}
	_ = err.Error()
}

// seeds returns the inputs of the transcripts.
func seeds(f *testing.F) [][]byte {
	var all [][]byte
	files, _ := filepath.Glob("testdata/jobs/*")
	for _, name := range files {
		if _, err := os.Stat(name); err != nil {
			f.Fatal(err)
		}
		datadriven.RunTestAny(f, name, func(_ testing.TB, d *datadriven.TestData) string {
			all = append(all, []byte(d.Input))
			return d.Expected
		})
	}
	return all
}
