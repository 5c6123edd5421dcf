package toolchain

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/plugins/bundle"
)

// A process must be built with the module versions of this repository, because the
// host is tested with them.
func TestProcessModules_AreThoseOfTheHost(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ProcessModules {
		if !strings.Contains(string(mod), "\t"+m+"\n") {
			t.Errorf("version in go.mod of cede differs from %s", m)
		}
	}
}

func project(t *testing.T, lang, source string, kind bundle.Kind) *Project {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "source"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return &Project{Dir: dir, Manifest: &bundle.Manifest{
		Name: "p", Kind: kind, Module: "build/p", Build: &bundle.Build{Lang: lang, Source: source},
	}}
}

func TestBuild_ReportsMissingToolsWithHint(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for lang, want := range map[string]string{
		"go": "golang-go", "c": "apt-get install clang lld", "assemblyscript": "apt-get install nodejs npm",
	} {
		p := project(t, lang, "source", bundle.Wasm)
		missing, ok := errors.AsType[*MissingError](buildError(p))
		if !ok || !strings.Contains(missing.Hint(), want) {
			t.Errorf("%s: %v", lang, missing)
		}
		if entries, _ := os.ReadDir(filepath.Join(p.Dir, "build")); len(entries) > 0 {
			t.Errorf("%s: %v was left behind", lang, entries)
		}
	}
	if _, err := exec.LookPath("/usr/bin/rustc"); err != nil {
		missing, ok := errors.AsType[*MissingError](buildError(project(t, "rust", "source", bundle.Wasm)))
		if !ok || !strings.Contains(missing.Hint(), "libstd-rust-dev-wasm32") {
			t.Errorf("rust: %v", missing)
		}
	}
}

func TestBuild_UsesAssemblyScriptCompilerOfProject(t *testing.T) {
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "node"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools)
	missing, ok := errors.AsType[*MissingError](buildError(project(t, "assemblyscript", "source", bundle.Wasm)))
	if !ok || !strings.Contains(missing.Hint(), "run npm install in ") {
		t.Error(missing)
	}
}

func TestBuild_Errors(t *testing.T) {
	for want, p := range map[string]*Project{
		"processes require Go":       project(t, "c", "source", bundle.Process),
		"has no go.mod":              project(t, "go", "source", bundle.Process),
		"no file or folder other in": project(t, "c", "other", bundle.Wasm),
	} {
		if err := buildError(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	p := project(t, "c", "source", bundle.Wasm)
	p.Manifest.Build = nil
	if err := buildError(p); !errors.Is(err, ErrNoSources) {
		t.Error(err)
	}
}

func buildError(p *Project) error {
	_, err := p.Build(context.Background())
	return err
}
