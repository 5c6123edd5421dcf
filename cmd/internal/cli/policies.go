package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// grants are what --grant gives, by what was written before its =.
type grants map[string][]string

// grantFlag gives a command --grant.
func grantFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringArray("grant", nil, "grant a policy something: with `P=keepRedundant` its list of victims stands whole")
}

func parseGrants(list []string) (grants, error) {
	g := grants{}
	for _, text := range list {
		at := strings.LastIndexByte(text, '=') // P may have some of its own
		if at <= 0 {
			return nil, usagef("write P=keepRedundant", "--grant %s: want P=GRANT", text)
		}
		name, grant := text[:at], text[at+1:]
		if !slices.Contains(policy.Grants, grant) {
			return nil, usagef("there is "+oneOf(policy.Grants), "--grant %s: there is nothing called %q to grant", text, grant)
		}
		g[name] = append(g[name], grant)
	}
	return g, nil
}

// check refuses grants to policies that have no part in a file when it is
// played under the given policies; none means as the file says.
func (g grants) check(f *scenario.File, played []string) error {
	if len(g) == 0 {
		return nil
	}
	names := slices.Clone(played)
	if len(played) == 0 {
		names = append(names, policy.DefaultName, f.Scheduler.Policy)
		for i := range f.Jobs {
			names = append(names, f.Jobs[i].Policy)
		}
	}
	for _, v := range f.Policies {
		if slices.Contains(names, v.Name) {
			names = append(names, v.Use)
		}
	}
	for _, n := range names {
		base, _, _ := strings.Cut(n, "?")
		names = append(names, base)
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if !slices.Contains(names, name) {
			return usagef("name it as it is written after -p, or as the scenario does", "--grant %s=%s: %s plays no policy of that name", name, g[name][0], f.Name)
		}
	}
	return nil
}

// resolver makes versions of policies with what was granted to them.
func (g grants) resolver(env *Env) func(sim.PolicySpec) (*policy.Version, error) {
	return func(spec sim.PolicySpec) (*policy.Version, error) {
		base, _, _ := strings.Cut(spec.Use, "?")
		given := slices.Clone(spec.Grants)
		for _, name := range []string{spec.Name, spec.Use, base} {
			given = append(given, g[name]...)
		}
		slices.Sort(given)
		spec.Grants = slices.Compact(given)
		p, err := env.Policies.Open(context.Background(), policies.Request{PolicySpec: spec})
		if err != nil {
			return nil, err
		}
		return p.Version, nil
	}
}

// completePolicies makes the built-in policies known to shells.
func completePolicies(cmd *cobra.Command) {
	var values []string
	for _, p := range builtin.List() {
		values = append(values, p.Name+"\t"+p.Summary)
	}
	complete(cmd, "policy", values)
}
