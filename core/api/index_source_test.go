package api_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// No endpoint answers a change with the index of the newest state: changes of others between
// the two would be missed by a caller that waits for changes after it.
func TestIndexResponse_DoesNotReadNewestState(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls, newest := 0, regexp.MustCompile(`indexResponse\([^\n]*Snapshot\(\)`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		calls += len(regexp.MustCompile(`c\.indexResponse\(`).FindAll(text, -1))
		if found := newest.Find(text); found != nil {
			t.Errorf("%s: %s", file, found)
		}
	}
	if calls == 0 {
		t.Error("the test finds no endpoint")
	}
}
