package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

const repository = "../../.." // root of the repository

// programsUnderTest builds the programs of cede once.
var programsUnderTest struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	if os.Getenv("CEDE_KUBERNETES_BUILD") != "" {
		b, err := Find(context.Background())
		if errors.Is(err, ErrNotBuilt) {
			fmt.Fprintln(os.Stderr, "building the programs of Kubernetes", b.Version, "into", b.Dir)
			err = b.Build(context.Background(), os.Stderr)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if programsUnderTest.dir != "" {
		_ = os.RemoveAll(programsUnderTest.dir) // a temporary folder
	}
	os.Exit(code)
}

// binaries returns the programs of Kubernetes. If they are not built the test is skipped.
func binaries(t *testing.T) Binaries {
	t.Helper()
	b, err := Find(t.Context())
	if errors.Is(err, ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// build builds a program of cede: a package of the module in a folder of the repository.
func build(t *testing.T, module, pkg string) string {
	t.Helper()
	p := &programsUnderTest
	p.once.Do(func() { p.dir, p.err = os.MkdirTemp("", "cede-") })
	if p.err != nil {
		t.Fatal(p.err)
	}
	path := filepath.Join(p.dir, filepath.Base(pkg))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, pkg)
	cmd.Dir = filepath.Join(repository, module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return path
}

func cede(t *testing.T) string { return build(t, ".", "./cmd/cede") }

// plugin returns kube-scheduler with the plugin: $CEDE_KUBERNETES_PLUGIN, or built.
func plugin(t *testing.T) string {
	if path := os.Getenv("CEDE_KUBERNETES_PLUGIN"); path != "" {
		return path
	}
	return build(t, "plugins/kubernetes", "./cmd/kube-scheduler")
}

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
