package policytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cases checks every golden case of a folder, each in its own subtest.
func Cases(t *testing.T, s *Subject, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			g, err := ParseGolden(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			differences, err := g.Check(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range differences {
				t.Errorf("%s: %s", file, d)
			}
		})
	}
}
