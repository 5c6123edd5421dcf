package sim_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// Mixes combine features that affect each other. Each file describes what must happen.
func TestMixes(t *testing.T) {
	files, err := filepath.Glob("testdata/mixes/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatal("no mixes", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			playExpected(t, name)
		})
	}
}
