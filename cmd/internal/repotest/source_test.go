package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longest is the maximum number of lines of a file.
const longest = 700

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestSource_FilesAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, ".go") {
		text := read(t, file)
		if lines := strings.Count(text, "\n"); lines > longest && !generated.MatchString(text) {
			t.Errorf("%s has %d lines, more than %d: move its second topic to a file of its own in the same package", file, lines, longest)
		}
	}
}

func TestSource_EveryPackageHasADocComment(t *testing.T) {
	t.Parallel()
	for dir, sources := range goFolders(t) {
		name, doc := packageComment(t, sources)
		switch want := "Package " + name + " "; {
		case doc == "":
			t.Errorf("package %s has no package comment: state its topic, its limits, its callers and its concurrency rule", dir)
		case name != "main" && !strings.HasPrefix(doc, want):
			t.Errorf("the comment of package %s begins with %.30q, want %q: go doc lists packages by this sentence", dir, doc, want)
		}
		if owns := path.Dir(dir) == "core" && dir != "core/internal"; owns && !slices.Contains(sources, dir+"/doc.go") {
			t.Errorf("package %s has no doc.go, where a reader expects the package comment", dir)
		}
	}
}

// Two variables select the counts of all tests. A test that reads one of them by itself
// would give it another meaning.
func TestSource_OnlyOnePackageReadsTheCountsOfTests(t *testing.T) {
	t.Parallel()
	const owner = "sdk/policytest/soak/"
	found := 0
	for _, file := range files(t, ".go") {
		ast.Inspect(parse(t, file, parser.SkipObjectResolution), func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Value != `"CEDE_SOAK"` && literal.Value != `"CEDE_QUICK"` {
				return true
			}
			found++
			if !strings.HasPrefix(file, owner) {
				t.Errorf("%s reads %s: use package %s", file, literal.Value, strings.TrimSuffix(owner, "/"))
			}
			return true
		})
	}
	if found == 0 {
		t.Error("no file reads the variables: the check has no subject")
	}
}

// goFolders returns the Go files of every folder that has any.
func goFolders(t *testing.T) map[string][]string {
	t.Helper()
	folders := map[string][]string{}
	for _, file := range files(t, ".go") {
		folders[path.Dir(file)] = append(folders[path.Dir(file)], file)
	}
	return folders
}

// packageComment returns a folder's package comment. It reads test files only if the
// folder has no other files.
func packageComment(t *testing.T, sources []string) (name, doc string) {
	t.Helper()
	isTest := func(file string) bool { return strings.HasSuffix(file, "_test.go") }
	onlyTests := !slices.ContainsFunc(sources, func(file string) bool { return !isTest(file) })
	for _, file := range sources {
		if isTest(file) && !onlyTests {
			continue
		}
		parsed := parse(t, file, parser.PackageClauseOnly|parser.ParseComments)
		if name = parsed.Name.Name; parsed.Doc != nil && parsed.Doc.Text() != "" {
			return name, parsed.Doc.Text()
		}
	}
	return name, ""
}

// isDecisionCode reports whether the package at rel takes part in decisions, which
// must have the same bits natively and in Wasm. sdk/fmath is included, because
// decisions depend on it.
func isDecisionCode(rel string) bool {
	return slices.ContainsFunc([]string{"sdk/policy", "sdk/rules", "sdk/fmath", "policies", "core/preempt", "core/scheduler"},
		func(dir string) bool { return within(rel, dir) })
}

// exact lists the functions of package math that decision code may call: their
// results are exact or correctly rounded on every machine. All others are computed
// by assembly, or in steps that a compiler may fuse.
var exact = []string{
	"Abs", "Ceil", "Copysign", "Dim", "Float32bits", "Float32frombits", "Float64bits", "Float64frombits", "Floor", "Frexp",
	"Ilogb", "Inf", "IsInf", "IsNaN", "Ldexp", "Logb", "Max", "Min", "Mod", "Modf", "NaN", "Nextafter", "Nextafter32",
	"Remainder", "Round", "RoundToEven", "Signbit", "Sqrt", "Trunc",
}

var mathConstant = regexp.MustCompile(`^(Max|Min|Smallest)[A-Z]|^(E|Pi|Phi|Sqrt2|SqrtE|SqrtPi|SqrtPhi|Ln2|Log2E|Ln10|Log10E)$`)

// inexact returns the uses of package math in a file that are not exact.
func inexact(file *ast.File) (uses []*ast.SelectorExpr, dotImport bool) {
	name := ""
	for _, imported := range file.Imports {
		if imported.Path.Value != `"math"` {
			continue
		}
		name = "math"
		if imported.Name != nil {
			name = imported.Name.Name
		}
	}
	if name == "" || name == "." || name == "_" {
		return nil, name == "."
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && x.Name == name &&
			!slices.Contains(exact, selector.Sel.Name) && !mathConstant.MatchString(selector.Sel.Name) {
			uses = append(uses, selector)
		}
		return true
	})
	return uses, false
}

func TestSource_DecisionCodeUsesPortableMath(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, ".go") {
		if !isDecisionCode(path.Dir(file)) || strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler reports it
		}
		uses, dotImport := inexact(parsed)
		if dotImport {
			t.Errorf("%s imports math with a dot, which hides its calls", file)
		}
		for _, use := range uses {
			t.Errorf("%s:%d: math.%s: use sdk/fmath: a decision must have the same bits natively and in Wasm", file, fset.Position(use.Pos()).Line, use.Sel.Name)
		}
	}
}

func TestSource_PortableMathRuleOnInventedFile(t *testing.T) {
	t.Parallel()
	parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import m "math"
var ok = []float64{m.Sqrt(2), m.Inf(1), m.MaxFloat64, m.Pi, float64(m.MaxInt64)}
var bad = []float64{m.Exp(1), m.Pow(2, 3), m.FMA(1, 2, 3), m.Log2(8)}
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	uses, _ := inexact(parsed)
	for _, use := range uses {
		found = append(found, use.Sel.Name)
	}
	if want := []string{"Exp", "Pow", "FMA", "Log2"}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

func parse(t *testing.T, file string, mode parser.Mode) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, mode)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
