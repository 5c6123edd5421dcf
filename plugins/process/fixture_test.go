//go:build unix

package process

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		runMode(mode)
	}
	if dir := os.Getenv(victimEnv); dir != "" {
		runVictim(dir)
	}
	code := m.Run()
	removeBuilt()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// shortDir returns a temporary directory with a short path, because socket paths are
// limited.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cede") //nolint:usetesting // its name is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// newHost returns a host that is closed with the test, and checks that it leaves no files.
func newHost(t testing.TB, o Options) *Host {
	t.Helper()
	if o.RunDir == "" {
		o.RunDir = shortDir(t)
	}
	if o.Restart == (Restart{}) {
		o.Restart = Restart{FirstDelay: time.Millisecond, MaxDelay: time.Millisecond}
	}
	h, err := NewHost(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(h.dir.path); !os.IsNotExist(err) {
			t.Errorf("directory of the host remains: %v", err)
		}
	})
	return h
}

// hostsIn returns the directories of hosts in a run directory.
func hostsIn(t testing.TB, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), hostPrefix) {
			list = append(list, e.Name())
		}
	}
	return list
}

// slowed returns a duration, doubled under the race detector.
func slowed(d time.Duration) time.Duration {
	if soak.Race {
		return 2 * d
	}
	return d
}

// self loads the test binary as a guest in the given mode.
func self(h *Host, mode string, limits policy.Limits) (*Module, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if soak.Race { // a process of this binary then maps far more memory than any limit
		limits.Memory = 1 << 50
	}
	return h.Load(context.Background(), exe, LoadOptions{Limits: limits, Env: []string{modeEnv + "=" + mode}})
}

func load(t testing.TB, h *Host, mode string, limits policy.Limits) *Module {
	t.Helper()
	m, err := self(h, mode, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func start(t testing.TB, m policy.Module) policy.Instance {
	t.Helper()
	i, err := m.Start(sdk.NewConfig(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// testCandidates returns small fixed candidates.
func testCandidates() *sdk.Candidates {
	r := rand.New(rand.NewPCG(1, 2))
	return policytest.Random(r, policytest.Shape{Options: 4, Rows: 8}).Candidates()
}

// callSelect calls SelectVictims.
func callSelect(i policy.Instance) error {
	var s sdk.Selection
	s.Reset()
	return i.SelectVictims(testCandidates(), &s)
}

// wantFault checks the kind and the text of a fault.
func wantFault(t testing.TB, err error, kind policy.Fault, words ...string) {
	t.Helper()
	bad, ok := errors.AsType[*policy.Error](err)
	if !ok {
		t.Fatalf("got %v, want a fault", err)
	}
	if bad.Fault != kind {
		t.Errorf("got a fault of kind %s (%v), want %s", bad.Fault, err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not contain %q", err, word)
		}
	}
}

// logged returns a logger and its output.
func logged(t testing.TB) (*slog.Logger, *buffer) {
	t.Helper()
	var b buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), &b
}
