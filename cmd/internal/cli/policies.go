package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/builtin"
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
	names := partsIn(f, played)
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if !slices.Contains(names, name) {
			return usagef("name it as it is written after -p, or as the scenario does", "--grant %s=%s: %s plays no policy of that name", name, g[name][0], f.Name)
		}
	}
	return nil
}

// to is what a policy is granted, by the file and by whatever name of it.
func (g grants) to(spec sim.PolicySpec) []string {
	given := slices.Clone(spec.Grants)
	for _, name := range []string{spec.Name, spec.Use, baseName(spec.Use)} {
		given = append(given, g[name]...)
	}
	slices.Sort(given)
	return slices.Compact(given)
}

// completePolicies makes the built-in policies known to shells, beside files.
func completePolicies(cmd *cobra.Command) {
	if err := cmd.RegisterFlagCompletionFunc("policy", policyNames()); err != nil {
		panic(err) // there is no such flag: a slip of ours
	}
}

// policyNames completes the names of built-in policies, or else files.
func policyNames() cobra.CompletionFunc {
	var values []string
	for _, p := range builtin.List() {
		values = append(values, p.Name+"\t"+p.Summary)
	}
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveDefault)
}
