package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// Limits of packages and types in core and cmd. A package or type beyond them
// holds more than one topic and should be split.
const (
	maxFiles   = 25 // of a package, without tests and generated code
	maxFields  = 20 // of a struct type
	maxMethods = 30 // of a type
)

// An exception allows a package or type beyond the limits, up to its own limit.
type exception struct {
	limit  int
	reason string
}

// document is the reason of types that mirror a document field by field.
const document = "mirrors a document of the API or of the scenario format: a field of the document is a field of the type"

// exceptions lists what is allowed beyond the limits, by NAME KIND. Limits only
// fall: an entry that is higher than needed fails the test, and so does one that is
// no longer needed.
var exceptions = map[string]exception{
	"cmd/internal/cli/cmdutil.Env fields":         {21, "is the outside of a command, which tests replace as a whole"},
	"core/jobspec.conversion methods":             {38, "converts one document: a method per part of it"},
	"core/jobspec.object methods":                 {39, "reads one document: a method per kind of value and per part"},
	"core/sim.engine methods":                     {33, "is the loop of a run: its instants, steps, writes and ends; the records of bindings, timers and policies are types of their own"},
	"core/sim/metrics.Collector methods":          {32, "receives the events of a run: a method per kind of event"},
	"core/model.Allocation fields":                {27, document},
	"core/model.Binding fields":                   {29, document},
	"core/model.Evaluation fields":                {25, document},
	"core/model.Group fields":                     {29, document},
	"core/model.Job fields":                       {21, document},
	"core/model.Node fields":                      {21, document},
	"core/kube.Translator fields":                 {21, "holds what the parts of one cluster have in common, such as labels that selectors read"},
	"core/kube.Translator methods":                {32, "translates one cluster: a method per part of a pod"},
	"core/kube.PodSpec fields":                    {24, document},
	"core/sim/metrics.Metrics fields":             {26, document},
	"core/server.Config fields":                   {42, "holds the parameters and collaborators of a server, each with its default; splitting it would only nest them"},
	"core/server.Server fields":                   {25, "connects the parts of a server and has no other state"},
	"core/server.Server methods":                  {34, "connects the parts of a server; most methods forward one call of the API"},
	"core/broker.Broker methods":                  {50, "has 24 methods of its API, each under the lock, and the transitions that concern several of its four parts"},
	"core/replication/fsm.applier methods":        {43, "has one method per command of the log that concerns several tables; the table of commands refers to them"},
	"core/server/eventsink.eventBuilder methods":  {39, "has one method per command of the log; the table of commands refers to them"},
	"core/scheduler/reconcile.Reconciler methods": {32, "is the comparison of a job with its allocations; each case is a method"},
	"core/server/membership.Manager methods":      {33, "implements the callbacks of gossip and the reconciliation that they start"},
	"core/server/policymgr.Manager methods":       {38, "implements the calls of the API and of the log for policies; its state is in four types"},
	"core/storage/raftlog.Log methods":            {38, "implements the log and stable store interfaces of Raft"},
}

// size counts the parts of a package: its files, and the fields and methods of
// each of its types.
type size struct {
	files           int
	fields, methods map[string]int
}

func TestStructure_PackagesAndTypesAreSmall(t *testing.T) {
	t.Parallel()
	needed := map[string]bool{}
	check := func(name, kind string, n, limit int) {
		if n <= limit {
			return
		}
		key := name + " " + kind
		needed[key] = true
		switch allowed := exceptions[key]; {
		case allowed.reason == "":
			t.Errorf("%s has %d %s, more than %d: split it", name, n, kind, limit)
		case n > allowed.limit:
			t.Errorf("%s has %d %s, more than its exception allows (%d): split it", name, n, kind, allowed.limit)
		case n < allowed.limit:
			t.Errorf("%s has %d %s: lower its exception from %d", name, n, kind, allowed.limit)
		}
	}
	sizes := sizesOf(t)
	for _, dir := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[dir]
		check(dir, "files", s.files, maxFiles)
		for _, name := range slices.Sorted(maps.Keys(s.fields)) {
			check(dir+"."+name, "fields", s.fields[name], maxFields)
		}
		for _, name := range slices.Sorted(maps.Keys(s.methods)) {
			check(dir+"."+name, "methods", s.methods[name], maxMethods)
		}
	}
	for key := range exceptions {
		if !needed[key] {
			t.Errorf("exception %q is not needed: remove it", key)
		}
	}
}

func sizesOf(t *testing.T) map[string]*size {
	t.Helper()
	sizes := map[string]*size{}
	for _, file := range files(t, ".go") {
		text := read(t, file)
		inScope := strings.HasPrefix(file, "core/") || strings.HasPrefix(file, "cmd/")
		if !inScope || strings.HasSuffix(file, "_test.go") || generated.MatchString(text) {
			continue
		}
		dir := path.Dir(file)
		if sizes[dir] == nil {
			sizes[dir] = &size{fields: map[string]int{}, methods: map[string]int{}}
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		sizes[dir].add(parsed)
	}
	return sizes
}

func (s *size) add(file *ast.File) {
	s.files++
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				s.methods[receiver(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					if structure, ok := spec.Type.(*ast.StructType); ok {
						s.fields[spec.Name.Name] = structure.Fields.NumFields()
					}
				}
			}
		}
	}
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
