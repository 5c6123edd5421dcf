package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun/runs"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/comparisons"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/core/sim/report"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/plugins/registry"
)

// PlayMain plays the comparison on the standard input for a server, and returns the exit
// code of the process.
func PlayMain() int {
	if err := comparisons.Serve(os.Stdin, os.Stdout, play); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// play plays as cede compare does, with one worker and the policies of the input. It starts
// no executables, and opens no files that the input names.
func play(in *comparisons.Input, progress func(comparisons.Progress)) (*comparisons.Report, error) {
	r, err := playInput(in, progress)
	var problem *comparisons.Error
	if err == nil || errors.As(err, &problem) {
		return r, err
	}
	e := cmdutil.AsError(err)
	return nil, &comparisons.Error{Message: e.Message, Hint: e.Hint, Lines: e.Lines}
}

func playInput(in *comparisons.Input, progress func(comparisons.Progress)) (_ *comparisons.Report, err error) {
	f, err := readInput(in)
	if err != nil {
		return nil, err
	}
	loader := policies.New(policies.Options{})
	defer func() { err = errors.Join(err, loader.Close()) }()
	host, err := loader.ForServer(policies.ServerOptions{})
	if err != nil {
		return nil, err
	}
	env := &cmdutil.Env{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, StderrTerminal: true, Width: func(io.Writer) int { return 0 }, Getenv: func(string) string { return "" },
		Clock: clock.Real{}, Build: app.Info(), Cores: 1, Memory: func() int64 { return 0 },
	}
	resolver := &inputPolicies{in, loader, host}
	c := &comparison{env: env, live: true, seeds: in.Seeds}
	for _, p := range in.Policies {
		c.policies = append(c.policies, p.Name)
	}
	c.players = simrun.FixedPolicies(env, c.policies, resolver.resolve)
	set := newRunSet(c, runs.NewStore(env, "", false))
	set.observe = func(share float64, text string) { progress(comparisons.Progress{Share: share, Text: text}) }
	if err := set.play(context.Background(), []*workload{{ScenarioFile: f, draw: 1}}); err != nil {
		return nil, err
	}
	return c.asReport(set, commandOf(in))
}

// asReport returns the report of complete runs.
func (c *comparison) asReport(runs *runSet, command string) (*comparisons.Report, error) {
	runs.numberDraws()
	d := compare.New(runs.namedRuns())
	d.Provenance = compare.Provenance{Command: command, Program: c.env.Build.Version, Versions: runs.versions}
	var page bytes.Buffer
	if err := report.Write(&page, d); err != nil {
		return nil, err
	}
	document, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	warnings := slices.Clone(runs.warnings)
	for _, fault := range runs.faults {
		warnings = append(warnings, fault.Error())
	}
	return &comparisons.Report{Document: document, HTML: page.Bytes(), Warnings: warnings}, nil
}

// commandOf returns the command that plays the same comparisons.
func commandOf(in *comparisons.Input) string {
	args := []string{"compare", in.Name}
	for _, p := range in.Policies {
		args = append(args, "-p", p.Name)
	}
	if in.Seeds > 1 {
		args = append(args, "--seeds", strconv.Itoa(in.Seeds))
	}
	if in.Description || in.Preset != "" {
		args = append(args, "--draws", "1")
	}
	return cmdutil.ShellCommand(args)
}

// readInput returns the scenario of an input, within its limits.
func readInput(in *comparisons.Input) (*simrun.ScenarioFile, error) {
	f, lines, err := decodeInput(in)
	if err != nil {
		return nil, err
	}
	file := &simrun.ScenarioFile{File: f, Path: in.Name, Lines: lines}
	nodes, instances := sizeOf(f)
	var problems []string
	if nodes > in.Limits.Nodes {
		problems = append(problems, fmt.Sprintf("it has %d nodes and clusters, and the limit is %d", nodes, in.Limits.Nodes))
	}
	if instances > in.Limits.Instances {
		problems = append(problems, fmt.Sprintf("it has %d instances and replicas, and the limit is %d", instances, in.Limits.Instances))
	}
	for i := range f.Policies {
		if v := &f.Policies[i]; !isBuiltin(v.Use) {
			problems = append(problems, fmt.Sprintf("policies[%d].use: %q is not a built-in policy", i, v.Use))
		}
	}
	if len(problems) > 0 {
		return nil, &comparisons.Error{
			Message: fmt.Sprintf("the server does not play %s: %s", in.Name, strings.Join(problems, "; ")), Hint: "play it with cede compare", Lines: problems,
		}
	}
	return file, nil
}

// isBuiltin reports whether a policy is built in. Others are files, which a scenario must
// not select on a server.
func isBuiltin(use string) bool {
	return slices.Contains(builtin.Names(), policyflags.BaseName(use)) || slices.Contains(builtin.Older(), policyflags.BaseName(use))
}

func decodeInput(in *comparisons.Input) (*scenario.File, *scenario.Lines, error) {
	if !in.Description && in.Preset == "" {
		return scenario.DecodeLines(in.Name, bytes.NewReader(in.Text))
	}
	var spec *generate.Spec
	var err error
	if in.Preset != "" {
		if !slices.ContainsFunc(generate.Presets(), func(p generate.Preset) bool { return p.Name == in.Preset }) {
			return nil, nil, &comparisons.Error{Message: fmt.Sprintf("unknown preset %q", in.Preset)}
		}
		spec, err = generate.Open(in.Preset)
	} else {
		spec, err = generate.Parse(in.Name, in.Text)
	}
	if err != nil {
		return nil, nil, err
	}
	f, _, err := simrun.Generate(in.Name, spec, func(generate.Progress) {})
	return f, &scenario.Lines{}, err
}

// sizeOf returns the numbers of nodes and clusters, and of instances and replicas, that a
// scenario expands to.
func sizeOf(f *scenario.File) (nodes, instances int) {
	const most = 1 << 40 // sums do not overflow
	add := func(sum, n *int) {
		k := 1
		if n != nil {
			k = *n
		}
		*sum = min(most, *sum+max(0, min(most, k)))
	}
	nodes, instances = len(f.Clusters), len(f.Running)
	for i := range f.Nodes {
		add(&nodes, f.Nodes[i].Count)
	}
	for i := range f.Bindings {
		add(&instances, f.Bindings[i].Replicas)
	}
	for i := range f.Jobs {
		for _, g := range f.Jobs[i].Groups {
			add(&instances, g.Count)
		}
	}
	return nodes, instances
}

// inputPolicies opens the policies of an input.
type inputPolicies struct {
	in     *comparisons.Input
	loader *policies.Loader
	host   *registry.PolicyHost
}

func (p *inputPolicies) resolve(spec sim.PolicySpec) (*policy.Version, error) {
	for i := range p.in.Policies {
		if given := &p.in.Policies[i]; given.Name == spec.Name && given.Version != nil {
			return p.host.Open(context.Background(), given.Version, given.Module)
		}
	}
	if !isBuiltin(spec.Use) {
		return nil, &policies.UnknownError{Policy: spec.Use}
	}
	return p.loader.Load(context.Background(), policies.Request{PolicySpec: spec})
}
