package toolchain

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/plugins/bundle"
)

func TestStale_ReturnsNewestSourceModifiedAfterModule(t *testing.T) {
	dir, built := t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	write := func(name string, after time.Duration) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, built.Add(after), built.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	b := &bundle.Bundle{
		Dir: dir, Path: filepath.Join(dir, "build", "p.wasm"),
		Manifest: bundle.Manifest{Build: &bundle.Build{Lang: "go", Source: "."}},
	}
	want := func(name, why string) {
		t.Helper()
		if name != "" {
			name = filepath.Join(dir, filepath.FromSlash(name))
		}
		if got := Stale(b); got != name {
			t.Errorf("%s: got %q, want %q", why, got, name)
		}
	}
	want("", "missing module")
	write("build/p.wasm", 0)
	write("policy.go", -time.Hour)
	want("", "the module is newer")
	write("policy.go", writeTolerance/2)
	want("", "a checkout wrote both")
	write("policy_test.go", time.Hour)
	write("README.md", time.Hour)
	write(".git/x.go", time.Hour)
	write("testdata/x.go", time.Hour)
	want("", "the module is not made of these")
	write("policy.go", time.Minute)
	write("inner/cost.go", time.Hour)
	write("main.go", time.Minute)
	want("inner/cost.go", "it is the newest of three")
	b.Manifest.Build = nil
	want("", "it was built elsewhere")
	b.Dir = ""
	want("", "it is a module alone")
}
