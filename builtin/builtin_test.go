package builtin

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/registry"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
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
		"":          "invalid policy",
		"?a=1":      "invalid policy",
		"p?":        "invalid setting",
		"p?a":       "invalid setting",
		"p?a=1&a=2": "duplicate setting a",
		"p?a=%":     "invalid URL escape",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestList_HasEveryPolicyOnceAndInOrder(t *testing.T) {
	for _, p := range List() {
		m, _, ok := Module(p.Name)
		if !ok || p.Summary == "" || p.New().Info().Name != p.Name || m.Digest() != policy.BuiltinDigest(p.Name, p.rules) {
			t.Errorf("%s: %+v", p.Name, m)
		}
	}
	if names := Names(); names[0] != policy.DefaultName || !slices.IsSorted(names[1:]) {
		t.Errorf("%v are not sorted", names)
	}
}

// Each folder of policies contains a built-in one, and the guest that is compared with it.
func TestList_HasEveryFolderOfPolicies(t *testing.T) {
	folders, err := os.ReadDir("../policies")
	if err != nil || len(folders) != len(List()) {
		t.Fatalf("%d folders for %d policies: %v", len(folders), len(List()), err)
	}
	for _, f := range folders {
		if _, err := os.Stat("../policies/" + f.Name() + "/guest/main.go"); err != nil || !slices.Contains(Names(), f.Name()) {
			t.Errorf("policies/%s is not in %v, or has no guest: %v", f.Name(), Names(), err)
		}
	}
}

func TestModule_KeepsEarlierVersionsOfRules(t *testing.T) {
	for _, name := range Older() {
		m, _, ok := Module(name)
		base, rules, _ := strings.Cut(name, "@")
		if !ok || m.Digest() != policy.BuiltinDigest(base, rules) || OfDigest(m.Digest()) != name {
			t.Errorf("%s: digest %s is that of %q", name, m.Digest(), OfDigest(m.Digest()))
		}
		newest, _, _ := Module(base)
		if newest.Digest() == m.Digest() {
			t.Errorf("%s is the newest version", name)
		}
	}
	if old := Older(); !slices.Equal(old, []string{"default@1", "karmada@1", "least-waste@1"}) {
		t.Errorf("%v", old)
	}
	for _, use := range []string{"default@2", "karmada@2", "least-waste@2", "nomad@1"} {
		if m, _, ok := Module(use); !ok || OfDigest(m.Digest()) != strings.Split(use, "@")[0] {
			t.Errorf("%s is not the newest version", use)
		}
	}
	for _, use := range []string{"default@3", "nomad@0", "default@", "@1"} {
		if _, _, ok := Module(use); ok {
			t.Errorf("%s exists", use)
		}
	}
}

// Where victims could run instead is read by default and least-waste alone, and by policies that
// leave the choice of victims or of options to default.
func TestList_RelocationReachesDefaultAndLeastWasteAlone(t *testing.T) {
	loader := registry.NewLoader(registry.Options{Builtin: Module})
	var reached []string
	for _, name := range append(Names(), Older()...) {
		v, err := loader.Load(t.Context(), registry.Spec{Use: name})
		if err != nil {
			t.Fatal(err)
		}
		hooks := v.Hooks()
		leaves := hooks&(policy.HookScoreVictims|policy.HookSelectVictims) == 0 || !hooks.Has(policy.HookScoreOptions)
		if leaves || v.Info().Columns.Has(sdk.RelocationColumns) {
			reached = append(reached, name)
		}
	}
	if want := []string{"default", "aging", "least-waste", "protect", "karmada@1"}; !slices.Equal(reached, want) {
		t.Errorf("it reaches %v, want %v", reached, want)
	}
}

// Every policy loads as a server loads it, which includes the self-test.
func TestList_EveryPolicyPassesSelfTest(t *testing.T) {
	loader := registry.NewLoader(registry.Options{Builtin: Module})
	for _, name := range Names() {
		v, err := loader.Load(t.Context(), registry.Spec{Use: name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		v.AddRef()
		if err := registry.SelfTest(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		v.ReleaseRef()
	}
}
