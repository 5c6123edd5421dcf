package repotest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/abi"
)

// fenced lists the code blocks of a language in a page.
func fenced(t *testing.T, page, language string) []string {
	t.Helper()
	var blocks []string
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(read(t, page), -1) {
		blocks = append(blocks, match[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no %s block: the check would pass by looking at nothing", page, language)
	}
	return blocks
}

func TestReadme_ScenariosAreValid(t *testing.T) {
	for _, block := range fenced(t, "README.md", "yaml") {
		file, err := scenario.Decode("README.md", strings.NewReader(block))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := scenario.Resolve(file); err != nil {
			t.Error(err)
		}
	}
}

func TestReadme_NamesVersionOfABI(t *testing.T) {
	text := strings.Join(strings.Fields(read(t, "README.md")), " ")
	if want := fmt.Sprintf("the policy ABI (%d.%d)", abi.Major, abi.Minor); !strings.Contains(text, want) {
		t.Errorf("README.md does not contain %q", want)
	}
}

func TestTutorial_PolicyCompiles(t *testing.T) {
	_, lookup := loadExports(t)
	for _, block := range fenced(t, "docs/tutorials/write-a-policy.md", "go") {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "write-a-policy.md", block, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
		if _, err := config.Check("readme", fset, []*ast.File{file}, nil); err != nil {
			t.Error(err)
		}
	}
}
