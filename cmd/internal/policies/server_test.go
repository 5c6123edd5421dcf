package policies

import (
	"os"
	"testing"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

func TestForServer_RunsBuiltinsAndModules(t *testing.T) {
	l := New(Options{})
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	h, err := l.ForServer(ServerOptions{Most: policy.Limits{Fuel: 1_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range h.Builtins() {
		v.AddRef()
		defer v.ReleaseRef()
		names = append(names, v.Name)
	}
	if len(names) != len(builtin.Names()) || names[0] != policy.DefaultName {
		t.Errorf("built-in policies are %v", names)
	}
	module, err := os.ReadFile("../../../sdk/abi/testdata/guests/decay-c.wasm")
	if err != nil {
		t.Fatal(err)
	}
	v, err := h.Describe(t.Context(), policy.LoadRequest{Module: module})
	if err != nil {
		t.Fatal(err)
	}
	if v.Kind != model.PolicyWasm || v.Digest != bundle.Digest(module) || v.Limits.Fuel != 1_000_000 {
		t.Errorf("%+v", v)
	}
	opened, err := h.Open(t.Context(), v, module)
	if err != nil || opened.ID != v.ID {
		t.Fatal(err)
	}
	opened.AddRef()
	opened.ReleaseRef()
}
