package policyflags

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Grants holds the privileges of --grant by the name before the =.
type Grants map[string][]string

// GrantFlag adds --grant to a command.
func GrantFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringArray("grant", nil, "grant a privilege to a policy: `P=keepRedundant` evicts all victims that it selects")
}

// ParseGrants parses values of --grant, each POLICY=GRANT. Its error lists all problems.
func ParseGrants(list []string) (Grants, error) {
	g := Grants{}
	var problems []error
	for _, text := range list {
		at := strings.LastIndexByte(text, '=') // P may contain = itself
		if at <= 0 {
			problems = append(problems, cmdutil.Usagef("use P=keepRedundant", "invalid --grant %q: expected P=GRANT", text))
			continue
		}
		name, grant := text[:at], text[at+1:]
		if !slices.Contains(policy.Grants, grant) {
			problems = append(problems, cmdutil.Usagef("use "+cmdutil.JoinOr(policy.Grants), "--grant %s: unknown grant %q", text, grant))
			continue
		}
		g[name] = append(g[name], grant)
	}
	return g, cmdutil.JoinProblems("--grant", problems...)
}

// Check returns an error if a grant names a policy that the file does not use under
// the played policies. If played is empty, the policies of the file are used.
func (g Grants) Check(f *scenario.File, played []string) error {
	if len(g) == 0 {
		return nil
	}
	names := ReferencedPolicies(f, played)
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if !slices.Contains(names, name) {
			return cmdutil.Usagef("use the name after -p, or the name in the scenario", "unknown policy in --grant %s=%s: %s does not use it", name, g[name][0], f.Name)
		}
	}
	return nil
}

// For returns the grants of a policy: those of the file, and those of the flags under any
// of its names.
func (g Grants) For(spec sim.PolicySpec) []string {
	given := slices.Clone(spec.Grants)
	for _, name := range []string{spec.Name, spec.Use, BaseName(spec.Use)} {
		given = append(given, g[name]...)
	}
	slices.Sort(given)
	return slices.Compact(given)
}

// CompletePolicyFlag adds shell completion of built-in policies and files.
func CompletePolicyFlag(cmd *cobra.Command) {
	if err := cmd.RegisterFlagCompletionFunc("policy", CompleteNames()); err != nil {
		panic(err) // programming error: the flag does not exist
	}
}

// CompleteNames completes the names of built-in policies, or file names.
func CompleteNames() cobra.CompletionFunc {
	var values []string
	for _, p := range builtin.List() {
		values = append(values, p.Name+"\t"+p.Summary)
	}
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveDefault)
}

// ReferencedPolicies lists the names of every policy that a file uses under the
// played policies. If played is empty, those are the policies of the file.
func ReferencedPolicies(f *scenario.File, played []string) []string {
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
	return names
}
