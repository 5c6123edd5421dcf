package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/cmd/internal/builtin"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// noPolicyNamed refuses an empty -p, which would otherwise mean none at all.
func noPolicyNamed(hint string) error { return usagef(hint, "-p '' names no policy") }

// warnOfShadows tells of variants that take the name of a built-in policy: in
// this file the name means the variant, on the next command line the other.
func (env *Env) warnOfShadows(f *scenarioFile) {
	for i := range f.Policies {
		name := f.Policies[i].Name
		if !slices.Contains(builtin.Names(), name) {
			continue
		}
		path := fmt.Sprintf("policies[%d].name", i)
		env.warn(fmt.Sprintf("%s:%d: %s: %q means this variant here, and no longer the built-in policy; give it another name",
			f.name, f.lines.Of(path), path, name))
	}
}

// policyProblems is an error about policies that the file itself names, with
// the places where it does; nil when the error is about something else. replaced
// says that -p stands in for what the file asks for: only its variants count.
func (f *scenarioFile) policyProblems(err error, replaced bool) error {
	invalid := &scenario.Error{File: f.name}
	for _, bad := range policyErrors(err) {
		what := asError(bad.Err)
		problem := scenario.Problem{Message: what.Message, Remedy: cmp.Or(what.Hint, "correct the setting, or leave it out")}
		for _, problem.Path = range f.naming(bad.Policy, what.Hint != "", replaced) {
			problem.Line = f.lines.Of(problem.Path)
			invalid.Problems = append(invalid.Problems, problem)
		}
	}
	if len(invalid.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(invalid.Problems, func(a, b scenario.Problem) int { return cmp.Compare(a.Line, b.Line) })
	return invalid
}

// policyErrors finds every policy that an error is about.
func policyErrors(err error) []*sim.PolicyError {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var list []*sim.PolicyError
		for _, each := range several.Unwrap() {
			list = append(list, policyErrors(each)...)
		}
		return list
	}
	if one, ok := errors.AsType[*sim.PolicyError](err); ok {
		return []*sim.PolicyError{one}
	}
	return nil
}

// naming lists the paths at which the file names a policy: where it is defined,
// when that is in the file, else where it is asked for. unknown says that nobody
// has heard of it, rather than that its settings are refused.
func (f *scenarioFile) naming(policy string, unknown, replaced bool) (paths []string) {
	for i := range f.Policies {
		if v := &f.Policies[i]; v.Name == policy {
			field := "use"
			if !unknown && len(v.Config) > 0 {
				field = "config"
			}
			return []string{fmt.Sprintf("policies[%d].%s", i, field)}
		}
	}
	if replaced {
		return nil
	}
	if f.Scheduler.Policy == policy {
		paths = append(paths, "scheduler.policy")
	}
	for i := range f.Jobs {
		if f.Jobs[i].Policy == policy {
			paths = append(paths, fmt.Sprintf("jobs[%d].policy", i))
		}
	}
	return paths
}
