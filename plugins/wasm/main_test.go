package wasm_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/wasm"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// scratch is the temporary directory of this run.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "cede-wasm-test-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(scratch)
		code := m.Run()
		if code == 0 {
			if err := goleak.Find(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return code
	}())
}

// cacheDir returns the directory of compiled modules. Runs share it as they share the build
// cache of Go, because the compilation of a Go module takes seconds. A test binary records no
// version of the engine, so that each go.sum has its own directory. It is replaced every
// month. With full counts each run compiles all modules.
var cacheDir = sync.OnceValue(func() string {
	user, err := os.UserCacheDir()
	sums, noSums := os.ReadFile("../../go.sum")
	if err != nil || noSums != nil || soak.Full() {
		return filepath.Join(scratch, "cache")
	}
	const month = 30 * 24 * time.Hour
	now, top := time.Now(), filepath.Join(user, "cede", "test-wasm")
	all, _ := filepath.Glob(filepath.Join(top, "*"))
	for _, dir := range all {
		// The directory of last month may be in use.
		if info, err := os.Stat(dir); err == nil && now.Sub(info.ModTime()) > 2*month {
			_ = os.RemoveAll(dir)
		}
	}
	return filepath.Join(top, fmt.Sprintf("%x-%d", sha256.Sum256(sums), now.Unix()/int64(month.Seconds())))
})

// goGuests caches the modules built in this run, by directory.
var goGuests sync.Map

// goGuest builds the module of a shipped policy, once.
func goGuest(t testing.TB, name string) []byte {
	t.Helper()
	return builtGuest(t, "../../policies/"+name+"/guest")
}

// crashGuest returns the module of testdata/crash.
func crashGuest(t testing.TB) []byte {
	t.Helper()
	return builtGuest(t, "testdata/crash")
}

func builtGuest(t testing.TB, dir string) []byte {
	t.Helper()
	if soak.Race {
		t.Skip("compiling Go modules is slow under the race detector")
	}
	build, _ := goGuests.LoadOrStore(dir, sync.OnceValues(func() ([]byte, error) { return buildGo(dir) }))
	code, err := build.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// buildGo builds a Go package as a module.
func buildGo(dir string) ([]byte, error) {
	out := filepath.Join(scratch, strings.ReplaceAll(filepath.Clean(dir), "/", "-")+".wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", dir, err, said)
	}
	return os.ReadFile(out)
}

// host returns a host that is closed with the test.
func host(t testing.TB, o wasm.Options) *wasm.Host {
	t.Helper()
	h, err := wasm.NewHost(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// load loads a module and closes it with the test.
func load(t testing.TB, h *wasm.Host, code []byte, limits policy.Limits) *wasm.Module {
	t.Helper()
	m, err := h.Load(t.Context(), code, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// start starts an instance with a configuration and closes it with the test.
func start(t testing.TB, m policy.Module, config string) policy.Instance {
	t.Helper()
	in, err := m.Start(configuration(t, m, config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in
}

func configuration(t testing.TB, m policy.Module, config string) *sdk.Config {
	t.Helper()
	c, err := settings.Read(m.Settings(), []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// engines are the two engines.
var engines = []struct {
	name    string
	options wasm.Options
}{
	{"compiler", wasm.Options{}},
	{"interpreter", wasm.Options{Interpreter: true}},
}
