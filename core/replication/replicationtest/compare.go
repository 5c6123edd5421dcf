package replicationtest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// CheckProperty checks a property in several rounds; in 50 times as many if
// CEDE_SOAK is set.
func CheckProperty(t *testing.T, rounds int, property func(*rapid.T)) {
	t.Helper()
	for range soak.Scale(rounds) {
		rapid.Check(t, property)
	}
}

// Derived lists the exported fields that every server computes, and that are
// therefore not encoded. Every other exported field is.
var Derived = map[reflect.Type][]string{
	reflect.TypeFor[model.Group]():      {"Job", "Position", "Ask"},
	reflect.TypeFor[model.Node]():       {"Avail", "ClassKey"},
	reflect.TypeFor[model.Allocation](): {"NodePos"},
	reflect.TypeFor[model.Cluster]():    {"Avail"},
	reflect.TypeFor[model.Binding]():    {"Ask"},
}

// Equal compares values as far as they are encoded. References to jobs and groups
// are compared by name and index.
var Equal = cmp.Options{
	cmpopts.EquateEmpty(), cmpopts.EquateNaNs(),
	cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		if !ok {
			return false
		}
		owner := p.Index(-2).Type()
		return slices.Contains(Derived[owner], f.Name()) || f.Name()[0] >= 'a' && f.Name()[0] <= 'z'
	}, cmp.Ignore()),
	cmp.FilterPath(func(p cmp.Path) bool {
		return len(p) > 1 && p.Index(-2).Type() == reflect.TypeFor[model.Allocation]() && p.Last().Type() == reflect.TypeFor[*model.Job]()
	}, cmp.Comparer(func(a, b *model.Job) bool { return a.Key() == b.Key() && a.ModifyIndex == b.ModifyIndex })),
	cmp.FilterPath(func(p cmp.Path) bool {
		return len(p) > 1 && p.Index(-2).Type() == reflect.TypeFor[model.Allocation]() && p.Last().Type() == reflect.TypeFor[*model.Group]()
	}, cmp.Comparer(func(a, b *model.Group) bool { return a.Name == b.Name })),
}
