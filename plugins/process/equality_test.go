//go:build unix

package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// built caches executables, because linking is slow.
var built struct {
	mu   sync.Mutex
	dir  string
	list map[string]string
}

// executable builds a program as a process.
func executable(t testing.TB, dir string) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if path := built.list[dir]; path != "" {
		return path
	}
	if built.dir == "" {
		tmp, err := os.MkdirTemp("", "cede") //nolint:usetesting // outlives the test, for others
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.list = tmp, map[string]string{}
	}
	path := filepath.Join(built.dir, fmt.Sprint(len(built.list)))
	cmd := exec.Command("go", "build", "-tags", "process", "-ldflags", "-s -w", "-o", path, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", dir, err, out)
	}
	built.list[dir] = path
	return path
}

func removeBuilt() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// guest loads the program in a directory.
func guest(t testing.TB, h *Host, dir string, o LoadOptions) *Module {
	t.Helper()
	m, err := h.Load(context.Background(), executable(t, dir), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func shippedGuest(name string) string { return "../../policies/" + name + "/guest" }

// configured starts an instance with a JSON configuration.
func configured(t testing.TB, m policy.Module, config string) policy.Instance {
	t.Helper()
	c, err := settings.Read(m.Settings(), []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	i, err := m.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// usualPolicies are compared in every run. Between them they implement all hooks that
// shipped policies have, and read all columns; a process of each policy must be linked.
var usualPolicies = []string{"default", "fair-share", "karmada", "least-waste", "optimal", "protect"}

// The same source answers identically to the bit, natively and as a process.
func TestShipped_AnswerIdenticallyAsProcess(t *testing.T) {
	if soak.Race && !soak.Full() {
		t.Skip("comparisons of answers find no races: set CEDE_SOAK=1")
	}
	h := newHost(t, Options{StartTimeout: time.Minute})
	t.Run("all", func(t *testing.T) { // the host lives until this ends
		for _, p := range hosttest.ShippedPolicies() {
			if !soak.Full() && !slices.Contains(usualPolicies, p.Name) {
				continue
			}
			for n, config := range p.Configs {
				t.Run(fmt.Sprintf("%s/%d", p.Name, n), func(t *testing.T) {
					t.Parallel()
					native := configured(t, p.Native, config)
					process := configured(t, guest(t, h, shippedGuest(p.Name), LoadOptions{Limits: policy.Limits{Time: time.Minute}}), config)
					if diff := cmp.Diff(native.Info(), process.Info()); diff != "" || native.Hooks() != process.Hooks() {
						t.Fatalf("%s %b %b", diff, native.Hooks(), process.Hooks())
					}
					r := rand.New(rand.NewPCG(uint64(n), 43))
					for i := range soak.Count(150, 100_000) {
						q := hosttest.RandomCase(r)
						want, got := hosttest.CallHooks(t, native, q), hosttest.CallHooks(t, process, q)
						if diff := cmp.Diff(want.Answers, got.Answers, hosttest.SameBits); diff != "" {
							t.Fatalf("case %d: native (-) and process (+) differ:\n%s", i, diff)
						}
					}
				})
			}
		}
	})
}
