package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// repositoryPath matches a path of this repository in backquotes.
var repositoryPath = regexp.MustCompile("`((?:cmd|core|docs|examples|gossip|plugins|policies|sdk)(?:/[\\w./-]+)?)`")

// TestContributing_NamesPathsThatExist keeps the checklists and the answers to the
// orientation questions up to date.
func TestContributing_NamesPathsThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := repositoryPath.FindAllStringSubmatch(string(text), -1)
	if len(found) < 50 {
		t.Fatalf("CONTRIBUTING.md names %d paths: the pattern does not find them", len(found))
	}
	for _, m := range found {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("CONTRIBUTING.md: %v", err)
		}
	}
}
