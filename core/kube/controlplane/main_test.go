package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	shared.scope.end()
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

// shared is the cluster of the short form, in which starting one for each story would take
// most of the time.
var shared struct {
	cluster *Cluster
	scope   scope
}

// cluster returns an empty cluster without a scheduler: one of its own for each story, or
// the shared one.
func cluster(t *testing.T) *Cluster {
	t.Helper()
	b := binaries(t)
	if !testing.Short() {
		return Start(t, b)
	}
	if shared.cluster == nil {
		shared.scope.TB = t
		shared.cluster = StartWithPodGroups(&shared.scope, b)
	}
	c := shared.cluster
	c.Reset(t)
	c.Kubelets.SetGrace(DefaultGrace)
	t.Cleanup(func() {
		for _, p := range []*Process{c.apiServer, c.controllers} {
			if t.Failed() {
				t.Logf("end of the output of %s:\n%s", p.name, p.Tail(12))
			}
		}
	})
	return c
}

// clusterWithPodGroups is cluster with the feature gate of PodGroups, which the shared one
// has too.
func clusterWithPodGroups(t *testing.T) *Cluster {
	t.Helper()
	if testing.Short() {
		return cluster(t)
	}
	return StartWithPodGroups(t, binaries(t))
}

// A scope is the scope of several tests, of which TB is the first.
type scope struct {
	testing.TB
	ends []func()
}

// Cleanup calls f at the end of the scope.
func (s *scope) Cleanup(f func()) { s.ends = append(s.ends, f) }

// Failed returns false: each test reports its own failure.
func (s *scope) Failed() bool { return false }

// TempDir returns a folder that exists until the end of the scope.
func (s *scope) TempDir() string {
	dir, err := os.MkdirTemp("", "cede-")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) }) // a temporary folder
	return dir
}

func (s *scope) end() {
	for _, f := range slices.Backward(s.ends) {
		f()
	}
}

// build builds a program of cede: a package of the module in a folder of the repository. The
// flags and the environment are those of make test-plugin, so that kube-scheduler with the
// plugin is compiled once.
func build(t *testing.T, module, pkg string) string {
	t.Helper()
	p := &programsUnderTest
	p.once.Do(func() { p.dir, p.err = os.MkdirTemp("", "cede-") }) //nolint:usetesting // all tests share it
	if p.err != nil {
		t.Fatal(p.err)
	}
	path := filepath.Join(p.dir, filepath.Base(pkg))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, pkg)
	cmd.Dir = filepath.Join(repository, module)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// cede returns the program cede: $CEDE_KUBERNETES_CEDE, or built.
func cede(t *testing.T) string {
	t.Helper()
	return given(t, "CEDE_KUBERNETES_CEDE", ".", "./cmd/cede")
}

// plugin returns kube-scheduler with the plugin: $CEDE_KUBERNETES_PLUGIN, or built.
func plugin(t *testing.T) string {
	t.Helper()
	return given(t, "CEDE_KUBERNETES_PLUGIN", "plugins/kubernetes", "./cmd/kube-scheduler")
}

// given returns the program that a variable of the environment names, or builds it.
func given(t *testing.T, variable, module, pkg string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return build(t, module, pkg)
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
