package simrun

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// ScenarioFile is a scenario with the path that it was read from.
type ScenarioFile struct {
	*scenario.File
	Path  string
	Lines *scenario.Lines
}

// ReadScenario reads a scenario file.
func ReadScenario(env *cmdutil.Env, name string) (*ScenarioFile, error) {
	r, err := env.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // read-only
	if name == cmdutil.Stdin {
		name = cmdutil.StandardInput
	}
	f, lines, err := scenario.DecodeLines(name, r)
	if err != nil {
		return nil, err
	}
	s := &ScenarioFile{f, name, lines}
	warnShadowedPolicies(env, s)
	return s, nil
}

// WriteScenario writes a scenario to the given file or stream.
func WriteScenario(env *cmdutil.Env, name string, f *scenario.File) error {
	return WriteObserved(env, name, f, func(int, int) {})
}

// WriteObserved is like WriteScenario, and calls progress with the numbers of elements that
// are written and that the file contains.
func WriteObserved(env *cmdutil.Env, name string, f *scenario.File, progress func(done, total int)) error {
	return env.Write(name, func(w io.Writer) error { return scenario.EncodeObserved(w, f, fileFormat(name), progress) })
}

// fileFormat returns the format that the extension of a file selects.
func fileFormat(name string) scenario.Format {
	if filepath.Ext(name) == ".json" {
		return scenario.JSON
	}
	return scenario.YAML
}

// warnShadowedPolicies warns about variants with the name of a built-in policy: in
// this file the name selects the variant, on the command line the built-in policy.
func warnShadowedPolicies(env *cmdutil.Env, f *ScenarioFile) {
	for i := range f.Policies {
		name := f.Policies[i].Name
		if !slices.Contains(builtin.Names(), name) {
			continue
		}
		path := fmt.Sprintf("policies[%d].name", i)
		env.Warn(fmt.Sprintf("%s:%d: %s: variant %q hides the built-in policy of that name; rename it",
			f.Path, f.Lines.Of(path), path, name))
	}
}

// PolicyProblems returns an error with the lines of the file that name the policies
// of err, or nil if err does not concern policies. If replaced is set, -p overrides
// the file's policy, and only its variants are considered.
func (f *ScenarioFile) PolicyProblems(err error, replaced bool) error {
	invalid := &scenario.Error{File: f.Path}
	for _, bad := range policyErrors(err) {
		what := cmdutil.AsError(bad.Err)
		problem := scenario.Problem{Message: what.Message, Remedy: cmp.Or(what.Hint, "correct the setting or remove it")}
		for _, problem.Path = range f.references(bad.Policy, what.Hint != "", replaced) {
			problem.Line = f.Lines.Of(problem.Path)
			invalid.Problems = append(invalid.Problems, problem)
		}
	}
	if len(invalid.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(invalid.Problems, func(a, b scenario.Problem) int { return cmp.Compare(a.Line, b.Line) })
	return invalid
}

// policyErrors returns the errors of all policies that err wraps.
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

// references lists the paths at which the file names a policy: its definition if the
// file has one, otherwise its uses. If unknown is set, the name is unknown; otherwise
// its settings are invalid.
func (f *ScenarioFile) references(policy string, unknown, replaced bool) (paths []string) {
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
