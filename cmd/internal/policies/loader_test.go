package policies_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
)

func resolver(t *testing.T) *policies.Loader {
	t.Helper()
	l := policies.New(policies.Options{})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestResolve_EveryBuiltInByName(t *testing.T) {
	for _, p := range builtin.List() {
		v, err := resolver(t).Resolve(sim.PolicySpec{Name: p.Name, Use: p.Name})
		if err != nil || v.Name != p.Name || v.Info().Name != p.Name || p.Summary == "" {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if names := builtin.Names(); names[0] != policy.DefaultName || !slices.IsSorted(names[1:]) {
		t.Errorf("%v are not sorted", names)
	}
}

func TestResolve_GrantsAndIdentity(t *testing.T) {
	resolve := func(name, use string, grants ...string) *policy.Version {
		v, err := resolver(t).Resolve(sim.PolicySpec{Name: name, Use: use, Grants: grants})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	nomad, again := resolve("nomad", "nomad"), resolve("mine", "nomad", policy.GrantKeepRedundant)
	if !nomad.KeepsRedundant() || nomad.ID != again.ID || again.Name != "mine" || len(again.Grants) != 1 {
		t.Errorf("%+v and %+v must have the same ID", nomad, again)
	}
	if other := resolve("default", "default"); other.ID == nomad.ID || len(other.Grants) != 0 {
		t.Errorf("%+v: want an ID other than that of nomad, and no grants", other)
	}
	if _, err := resolver(t).Resolve(sim.PolicySpec{Use: "default", Grants: []string{"all"}}); err == nil {
		t.Error("an unknown grant is accepted")
	}
}

func TestResolve_UnknownPolicy(t *testing.T) {
	for use, want := range map[string]string{
		"nope":         `unknown policy "nope"`,
		"a/b.wasm":     "no such file",
		"./mine":       "no such file",
		"mine?x=1":     `unknown policy "mine"`,
		"nomad?x=1":    `x: unknown setting`,
		"default?x=1":  "the policy has no settings",
		"default?x=[1": "the policy has no settings",
	} {
		_, err := resolver(t).Resolve(sim.PolicySpec{Use: use})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", use, err, want)
		}
		var unknown *policies.UnknownError
		if errors.As(err, &unknown) && unknown.Hint() == "" {
			t.Errorf("%s: no hint", use)
		}
	}
}
