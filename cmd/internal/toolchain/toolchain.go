package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition/build"
)

// Project is a directory with the sources of a policy.
type Project struct {
	Dir      string
	Manifest *bundle.Manifest
	// Say receives messages about long or unexpected steps; it may be nil.
	Say func(text string)
	// Environ is the environment of compilers; nil: that of the process.
	Environ []string
	// Builder creates the archives of compositions.
	Builder *build.Builder
}

// MissingError is returned if a tool is not installed.
type MissingError struct {
	Tool    string
	Install string // how to install it
}

func (e *MissingError) Error() string { return e.Tool + " is missing" }

// Hint returns how to install the tool.
func (e *MissingError) Hint() string { return e.Install }

// CompileError is returned if a compiler rejects the sources.
type CompileError struct {
	Command string
	Output  string // of the compiler
	Err     error
}

func (e *CompileError) Error() string { return fmt.Sprintf("%s: %v", e.Command, e.Err) }

// ErrNoSources is returned if a manifest does not describe how its module is built.
var ErrNoSources = errors.New("the manifest has no build section: its module was built elsewhere")

// compilers holds the function that builds the sources of each language.
var compilers = map[string]func(ctx context.Context, p *Project, out string) error{
	"go": goModule, "c": cModule, "rust": rustModule, "assemblyscript": assemblyScriptModule,
	bundle.Rules: rulesModule, bundle.Uses: compositionModule,
}

// A Built is a module in a temporary folder beside the path of the manifest. The caller
// must close it.
type Built struct {
	Module string // path relative to the project's directory, with slashes
	path   string
	target string
	made   bool // the folder of the target
}

// Commit replaces the module at the path of the manifest.
func (b *Built) Commit() error { return os.Rename(b.path, b.target) }

// Close removes the temporary folder, and the folder of the module if Build created it and
// nothing was committed.
func (b *Built) Close() {
	_ = os.RemoveAll(filepath.Dir(b.path)) // a leftover folder does no harm
	if b.made {
		_ = os.Remove(filepath.Dir(b.target)) // fails if it contains the module
	}
}

// Build builds the module of the manifest. An existing module remains until Commit.
func (p *Project) Build(ctx context.Context) (built *Built, err error) {
	b := p.Manifest.Build
	if b == nil {
		return nil, ErrNoSources
	}
	compile := compilers[b.Lang]
	if p.Manifest.Kind == bundle.Process {
		if b.Lang != "go" {
			return nil, fmt.Errorf("policies in %s can only be built as WebAssembly modules; processes require Go", b.Lang)
		}
		compile = goProcess
	}
	if _, err := os.Stat(filepath.Join(p.Dir, filepath.FromSlash(b.Source))); err != nil {
		return nil, fmt.Errorf("build.source: no file or folder %s in %s", b.Source, p.Dir)
	}
	module := filepath.Join(p.Dir, filepath.FromSlash(p.Manifest.Module))
	_, missing := os.Stat(filepath.Dir(module))
	if err := os.MkdirAll(filepath.Dir(module), 0o777); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(filepath.Dir(module), ".build-")
	if err != nil {
		return nil, err
	}
	built = &Built{path: filepath.Join(work, filepath.Base(module)), target: module, made: missing != nil}
	defer func() {
		if err != nil {
			built.Close()
			built = nil
		}
	}()
	relative, err := filepath.Rel(p.Dir, built.path)
	if err != nil {
		return nil, err
	}
	built.Module = filepath.ToSlash(relative)
	out, err := filepath.Abs(built.path)
	if err != nil {
		return nil, err
	}
	return built, compile(ctx, p, out)
}

// run runs a tool in the project's directory.
func (p *Project) run(ctx context.Context, environ []string, tool string, args ...string) error {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = p.Dir
	cmd.Env = append(p.environ(), environ...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &CompileError{Command: filepath.Base(tool) + " " + args[0], Output: strings.TrimRight(said.String(), "\n"), Err: err}
	}
	return nil
}

func (p *Project) environ() []string {
	if p.Environ != nil {
		return p.Environ
	}
	return os.Environ()
}

func (p *Project) getenv(name string) string {
	value := ""
	for _, v := range p.environ() {
		if rest, ok := strings.CutPrefix(v, name+"="); ok {
			value = rest
		}
	}
	return value
}

func (p *Project) say(text string) {
	if p.Say != nil {
		p.Say(text)
	}
}

// source returns the path of the sources relative to the project's directory.
func (p *Project) source() string { return filepath.FromSlash(p.Manifest.Build.Source) }

// find returns the path of the first installed tool among its names.
func find(install string, names ...string) (string, error) {
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", &MissingError{Tool: names[0], Install: install}
}
