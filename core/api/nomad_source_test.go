package api

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	nomad "github.com/hashicorp/nomad/api"
)

// nomadVersion is the version of Nomad with the commands of the page, and nomadRecorded the file
// with their calls.
const (
	nomadVersion  = "1.11.2"
	nomadRecorded = "testdata/nomad-commands.txt"
)

// A nomadSource is the parsed package of Nomad's commands. It resolves calls by name only,
// because type checking would require all modules that Nomad depends on.
type nomadSource struct {
	methods   map[string]reflect.Value            // of the client, as returned by nomadMethods
	functions map[string]*ast.FuncDecl            // by name
	types     map[string]map[string]*ast.FuncDecl // methods by type and name
	commands  map[string]string                   // type that implements each command
}

// readNomadSource parses the folder command of a version of Nomad.
func readNomadSource(folder string, methods map[string]reflect.Value) (*nomadSource, error) {
	s := &nomadSource{methods: methods, functions: map[string]*ast.FuncDecl{}, types: map[string]map[string]*ast.FuncDecl{}, commands: map[string]string{}}
	files, err := filepath.Glob(folder + "/command/*.go")
	if err != nil || len(files) == 0 {
		return nil, cmp.Or(err, fmt.Errorf("%s holds no commands", folder))
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				s.declare(f)
			}
		}
	}
	s.findCommands()
	return s, nil
}

func (s *nomadSource) declare(f *ast.FuncDecl) {
	if f.Recv == nil {
		s.functions[f.Name.Name] = f
		return
	}
	owner := typeName(f.Recv.List[0].Type)
	if s.types[owner] == nil {
		s.types[owner] = map[string]*ast.FuncDecl{}
	}
	s.types[owner][f.Name.Name] = f
}

// typeName returns the name of a type or of the type that a pointer refers to.
func typeName(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	name, _ := e.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// findCommands reads the map from names to factories in the function Commands.
func (s *nomadSource) findCommands() {
	ast.Inspect(s.functions["Commands"], func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		name, ok := pair.Key.(*ast.BasicLit)
		if !ok {
			return true
		}
		ast.Inspect(pair.Value, func(n ast.Node) bool {
			if c, ok := n.(*ast.CompositeLit); ok && s.types[typeName(c.Type)]["Run"] != nil {
				s.commands[strings.Trim(name.Value, `"`)] = typeName(c.Type)
			}
			return true
		})
		return false
	})
}

// calls returns the calls of the client that a command can reach, in the order of the source.
func (s *nomadSource) calls(command string) []string {
	w := &nomadWalk{nomadSource: s, visited: map[*ast.FuncDecl]bool{}}
	w.function(s.types[s.commands[command]]["Run"])
	return w.found
}

// A nomadWalk collects the calls that functions reach.
type nomadWalk struct {
	*nomadSource
	visited map[*ast.FuncDecl]bool
	found   []string
}

func (w *nomadWalk) function(f *ast.FuncDecl) {
	if f == nil || f.Body == nil || w.visited[f] {
		return
	}
	w.visited[f] = true
	owners := map[string]string{}  // types of the receiver and of variables
	handles := map[string]string{} // variables that hold a handle of the client
	if f.Recv != nil && len(f.Recv.List[0].Names) > 0 {
		owners[f.Recv.List[0].Names[0].Name] = typeName(f.Recv.List[0].Type)
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			name, ok := n.Lhs[0].(*ast.Ident)
			if ok {
				handles[name.Name], owners[name.Name] = handleOf(n.Rhs[0]), cmp.Or(w.resultOf(n.Rhs[0]), owners[name.Name])
			}
		case *ast.SelectorExpr: // also a method that is passed as a value
			handle, owner := handleOf(n.X), ""
			if name, ok := n.X.(*ast.Ident); ok {
				handle, owner = handles[name.Name], owners[name.Name]
			}
			if call := handle + "." + n.Sel.Name; w.methods[call].IsValid() {
				if !slices.Contains(w.found, call) {
					w.found = append(w.found, call)
				}
				break
			}
			w.function(w.method(owner, n.Sel.Name))
		case *ast.Ident:
			w.function(w.functions[n.Name])
		}
		return true
	})
}

// handleOf returns the name of the handle that a call without arguments returns, such as Jobs
// for client.Jobs(), or "".
func handleOf(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return ""
	}
	if f, ok := call.Fun.(*ast.SelectorExpr); ok {
		return f.Sel.Name
	}
	return ""
}

// resultOf returns the type of the result of a call of a function of the package, or "".
func (s *nomadSource) resultOf(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	name, _ := call.Fun.(*ast.Ident)
	if name == nil || s.functions[name.Name] == nil || s.functions[name.Name].Type.Results == nil {
		return ""
	}
	return typeName(s.functions[name.Name].Type.Results.List[0].Type)
}

// method returns a method of a type, of the type that all commands embed, or the only one with
// its name if the type is unknown. It returns nil if the package has none.
func (s *nomadSource) method(owner, name string) *ast.FuncDecl {
	if f := s.types[owner][name]; f != nil {
		return f
	}
	if f := s.types["Meta"][name]; f != nil {
		return f
	}
	var only *ast.FuncDecl
	for _, methods := range s.types {
		if f := methods[name]; f != nil {
			if only != nil {
				return nil
			}
			only = f
		}
	}
	return only
}

// recordedCalls returns the commands of the page, each with the calls that it can make.
func (s *nomadSource) recordedCalls() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(nomadCommands)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(s.calls(name), " "))
	}
	return b.String()
}

// The recorded calls of Nomad's commands are those of its source, which is not a dependency.
// With -write the file is written.
func TestNomadCommands_MatchSource(t *testing.T) {
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(strings.TrimSpace(string(cache)), "github.com/hashicorp/nomad@v"+nomadVersion)
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("the source of Nomad is not in the module cache: go mod download github.com/hashicorp/nomad@v%s", nomadVersion)
	}
	c, err := nomad.NewClient(nomad.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	s, err := readNomadSource(folder, nomadMethods(c))
	if err != nil {
		t.Fatal(err)
	}
	comparePage(t, nomadRecorded, s.recordedCalls())
}
