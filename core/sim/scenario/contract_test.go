package scenario

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDecode_ContractScenarios(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/contract/*")
	if len(files) < 8 {
		t.Fatalf("found only %d scenarios", len(files))
	}
	for _, name := range files {
		f, err := decodeFile(t, name)
		if err != nil {
			t.Errorf("unexpected error: %v", err)
			continue
		}
		if r, err := Resolve(f); err != nil || len(r.Warnings) > 0 {
			t.Errorf("%s: resolved %v, err %v", name, r, err)
		}
	}
}

func decodeFile(t testing.TB, name string) (*File, error) {
	t.Helper()
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return Decode(name, r)
}
