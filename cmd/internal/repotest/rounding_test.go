package repotest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// On several machines the compiler may compute x*y+z with one rounding, even if
// product and sum are in different statements or functions. WebAssembly rounds
// twice. An explicit conversion forces the rounding. In decision code every
// floating-point product is therefore converted, unless it provably does not become
// part of a sum.
func TestSource_DecisionCodeRoundsProducts(t *testing.T) {
	packages, lookup := loadExports(t)
	for _, p := range packages {
		if !isDecisionCode(p.rel) || len(p.GoFiles) == 0 {
			continue
		}
		fset := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(root, p.rel, name), nil, parser.SkipObjectResolution)
			if err != nil {
				break
			}
			parsed = append(parsed, file)
		}
		found, err := unrounded(fset, p.ImportPath, parsed, lookup)
		if err != nil || len(parsed) != len(p.GoFiles) {
			t.Logf("%s does not compile and is not checked: %v", p.rel, err)
			continue
		}
		for _, pos := range found {
			at := fset.Position(pos)
			t.Errorf("%s/%s:%d:%d: write float64(x*y): a bare product may be fused with a following sum, which changes its bits compared with Wasm", p.rel, filepath.Base(at.Filename), at.Line, at.Column)
		}
	}
}

// loadExports returns the module's packages and a lookup of the compiled interfaces
// of their imports.
func loadExports(t *testing.T) ([]listed, importer.Lookup) {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-deps", "-export", "-json=ImportPath,Name,GoFiles,Export", "./sdk/...", "./policies/...", "./core/...")
	cmd.Dir = root
	packages, err := decodeList(cmd)
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	return packages, func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("%s is not compiled", path)
		}
		return os.Open(exports[path])
	}
}

// unrounded returns the floating-point products that may be fused with a sum.
func unrounded(fset *token.FileSet, importPath string, parsed []*ast.File, lookup importer.Lookup) ([]token.Pos, error) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	if _, err := config.Check(importPath, fset, parsed, info); err != nil {
		return nil, err
	}
	c := products{info: info, parent: map[ast.Node]ast.Node{}, reads: map[types.Object][]ast.Expr{}}
	for _, file := range parsed {
		c.walk(file)
	}
	return c.found, nil
}

// products collects floating-point products that may be fused with a sum.
type products struct {
	info   *types.Info
	parent map[ast.Node]ast.Node
	reads  map[types.Object][]ast.Expr // uses of each variable
	found  []token.Pos
}

func (c *products) walk(file *ast.File) {
	var stack []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			c.parent[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		if ident, ok := n.(*ast.Ident); ok && c.info.Uses[ident] != nil {
			c.reads[c.info.Uses[ident]] = append(c.reads[c.info.Uses[ident]], ident)
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.MUL && c.computesFloat(n) && !c.rounded(n) {
				c.found = append(c.found, n.OpPos)
			}
		case *ast.AssignStmt:
			if n.Tok == token.MUL_ASSIGN && isFloat(c.info.TypeOf(n.Lhs[0])) {
				c.found = append(c.found, n.TokPos)
			}
		}
		return true
	})
}

// rounded reports whether no use of a value can be fused with a sum.
func (c *products) rounded(e ast.Expr) bool {
	if c.roundedAtOnce(e) {
		return true
	}
	assigned, ok := c.parent[e].(*ast.AssignStmt)
	if !ok || len(assigned.Lhs) != 1 {
		return false
	}
	name, ok := assigned.Lhs[0].(*ast.Ident)
	if !ok {
		return false
	}
	variable, ok := c.info.ObjectOf(name).(*types.Var)
	if !ok || variable.Parent() == variable.Pkg().Scope() {
		return false
	}
	for _, read := range c.reads[variable] {
		if !c.roundedAtOnce(read) && !assignedTo(c.parent[read], read) {
			return false
		}
	}
	return true
}

// assignedTo reports whether the statement only overwrites the expression.
func assignedTo(statement ast.Node, e ast.Expr) bool {
	assign, ok := statement.(*ast.AssignStmt)
	return ok && (assign.Tok == token.ASSIGN || assign.Tok == token.DEFINE) && slices.Contains(assign.Lhs, e)
}

// roundedAtOnce reports whether the enclosing expression rounds a value.
func (c *products) roundedAtOnce(n ast.Node) bool {
	for n = c.parent[n]; ; n = c.parent[n] {
		switch at := n.(type) {
		case *ast.ParenExpr:
		case *ast.UnaryExpr: // a fused operation may negate its product
			if at.Op != token.SUB && at.Op != token.ADD {
				return false
			}
		case *ast.BinaryExpr: // a product is checked itself; a quotient rounds; a comparison does not add
			return at.Op != token.ADD && at.Op != token.SUB
		case *ast.CallExpr:
			return c.info.Types[at.Fun].IsType() || c.callsMath(at)
		default:
			return false
		}
	}
}

// callsMath reports whether the call is to package math, which rounds its arguments
// and results. A call to any other function may be inlined into a sum.
func (c *products) callsMath(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	object := c.info.Uses[selector.Sel]
	return object != nil && object.Pkg() != nil && object.Pkg().Path() == "math"
}

// computesFloat reports whether the expression is computed in floating point at run
// time.
func (c *products) computesFloat(e ast.Expr) bool {
	return c.info.Types[e].Value == nil && isFloat(c.info.TypeOf(e))
}

func isFloat(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsFloat != 0
}

func TestSource_RoundingRuleOnInventedFile(t *testing.T) {
	const text = `package x
import "math"
const k = 2.0 * 3.0
func keep(float64) float64
func good(x, y, z float64, i int) (float64, bool) {
	r := float64(x*y) + z
	r += float64(-(x * y))
	r = x * y / z
	r += math.Sqrt(x * y)
	r += float64(x * y * z)
	n := int(x*y) + i*i
	y2 := y * y
	r += float64(y2*y2) + y2/z
	return r + float64(n), x*y < z
}
func bad(x, y, z float64) float64 {
	r := x*y + z   // 1
	t := x * y     // 2
	r *= t         // 3
	r -= -(x * y)  // 4
	r += keep(x*y) // 5
	return x*y + t // 6
}
`
	_, lookup := loadExports(t)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "x.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found, err := unrounded(fset, "x", []*ast.File{parsed}, lookup)
	if err != nil {
		t.Fatal(err)
	}
	const first = 17 // the line marked 1
	for i, pos := range found {
		if line := fset.Position(pos).Line; line != first+i {
			t.Errorf("found a product in line %d, want line %d", line, first+i)
		}
	}
	if len(found) != 6 {
		t.Errorf("found %d products, want 6", len(found))
	}
}
