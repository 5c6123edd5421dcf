package guesttest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// promises are the flags of policy.Info, by their names in AssemblyScript.
var promises = []struct {
	name string
	of   func(*policy.Info) *bool
}{
	{"adaptive", func(i *policy.Info) *bool { return &i.Adaptive }},
	{"ascending", func(i *policy.Info) *bool { return &i.Ascending }},
	{"keepRedundant", func(i *policy.Info) *bool { return &i.KeepRedundant }},
	{"elastic", func(i *policy.Info) *bool { return &i.Elastic }},
	{"multiCluster", func(i *policy.Info) *bool { return &i.MultiCluster }},
	{"leastFirst", func(i *policy.Info) *bool { return &i.LeastFirst }},
	{"youngestFirst", func(i *policy.Info) *bool { return &i.YoungestFirst }},
	{"monotone", func(i *policy.Info) *bool { return &i.Monotone }},
}

// The probe sets every flag, so it would not reveal a library that mixes flags up. Three
// policies that set different subsets do: no two flags are set by the same ones. The first,
// which distinguishes adjacent flags, is always built, the others if CEDE_SOAK is set. They
// are the policies of the READMEs, and answer like them.
func TestFlags_AreDistinguished(t *testing.T) {
	if soak.Race {
		t.Skip("compilers are slow, and have no races of ours")
	}
	policies := soak.Count(1, 3)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			needs(t, language)
			skipSlowCompiler(t, language)
			for bit := range policies {
				checkFlags(t, language, bit)
			}
		})
	}
}

// checkFlags builds a policy that sets the flags with a number, from 1, that has the given
// bit.
func checkFlags(t *testing.T, language string, bit int) {
	t.Helper()
	var want policy.Info
	var names []string
	for i, p := range promises {
		if (i+1)>>bit&1 == 1 {
			*p.of(&want) = true
			names = append(names, p.name)
		}
	}
	g := made(t, language, promising(t, language, names))
	checkLeastLost(t, g)
	got := g.describe().Info
	want.Name, want.Delta, want.Columns = got.Name, got.Delta, got.Columns
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v: %s", names, diff)
	}
}

// promising returns the policy of a README with additional flags.
func promising(t *testing.T, language string, names []string) string {
	t.Helper()
	var before, after string
	for _, name := range names {
		snake := regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(name, func(s string) string { return "_" + strings.ToLower(s) })
		switch language {
		case "c":
			before, after = ".columns = ", after+" | CEDE_"+strings.ToUpper(snake)
		case "rust":
			before, after = "..Info::default()", after+fmt.Sprintf("%s: true, ", snake)
		case "assemblyscript":
			before, after = "info.name = ", after+fmt.Sprintf("info.%s = true; ", name)
		}
	}
	if language == "c" {
		after = ".flags = 0" + after + ", "
	}
	policy := source(t, language)
	if strings.Count(policy, before) != 1 {
		t.Fatalf("the policy of the README does not hold %q once", before)
	}
	return strings.Replace(policy, before, after+before, 1)
}
