package builtin

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
)

func TestParse_ValuesAreScalarsOrText(t *testing.T) {
	for text, want := range map[string]Spec{
		"nomad":                             {Use: "nomad"},
		"aging?halfLife=10m":                {Use: "aging", Config: map[string]any{"halfLife": "10m"}},
		"p?a=1&b=true&c=null&d=x&e=1.5":     {Use: "p", Config: map[string]any{"a": json.Number("1"), "b": true, "c": nil, "d": "x", "e": json.Number("1.5")}},
		`p?a="1"&b=&c=1 2&d=[1]&e={}`:       {Use: "p", Config: map[string]any{"a": "1", "b": "", "c": "1 2", "d": "[1]", "e": "{}"}},
		"p?a=b=c&d%26=e%26f&g=1+1&h=100%25": {Use: "p", Config: map[string]any{"a": "b=c", "d&": "e&f", "g": "1+1", "h": "100%"}},
	} {
		if got, err := Parse(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v; want %#v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":          "names no policy",
		"?a=1":      "names no policy",
		"p?":        "is no setting",
		"p?a":       "is no setting",
		"p?a=1&a=2": "a is set twice",
		"p?a=%":     "invalid URL escape",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestResolve_EveryBuiltInByName(t *testing.T) {
	for _, p := range List() {
		v, err := Resolve(sim.PolicySpec{Name: p.Name, Use: p.Name})
		if err != nil || v.Name != p.Name || v.Info().Name != p.Name || p.Summary == "" {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if names := Names(); names[0] != policy.DefaultName || !slices.IsSorted(names[1:]) {
		t.Errorf("%v are in no order that a reader could follow", names)
	}
}

func TestResolve_GrantsAndIdentity(t *testing.T) {
	resolve := func(name, use string, grants ...string) *policy.Version {
		v, err := Resolve(sim.PolicySpec{Name: name, Use: use, Grants: grants})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	nomad, again := resolve("nomad", "nomad"), resolve("mine", "nomad", policy.GrantKeepRedundant)
	if !nomad.KeepsRedundant() || nomad.ID != again.ID || again.Name != "mine" || len(again.Grants) != 1 {
		t.Errorf("%+v and %+v are the same rules", nomad, again)
	}
	if other := resolve("default", "default"); other.ID == nomad.ID || len(other.Grants) != 0 {
		t.Errorf("%+v is nobody else", other)
	}
	if _, err := Resolve(sim.PolicySpec{Use: "default", Grants: []string{"all"}}); err == nil {
		t.Error("there is no such grant")
	}
}

func TestResolve_UnknownSaysWhatItLooksLike(t *testing.T) {
	for use, want := range map[string]string{
		"nope":         `there is no policy named "nope"`,
		"a/b.wasm":     "a WebAssembly module cannot be played: not supported yet",
		"./mine":       "folder or executable cannot be played: not supported yet",
		"mine?x=1":     `there is no policy named "mine"`,
		"nomad?x=1":    `x: there is no such setting`,
		"default?x=1":  "the policy has no settings",
		"default?x=[1": "the policy has no settings",
	} {
		_, err := Resolve(sim.PolicySpec{Use: use})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", use, err, want)
		}
		var unknown *UnknownError
		if errors.As(err, &unknown) && unknown.Hint() == "" {
			t.Errorf("%s: no hint", use)
		}
	}
}
