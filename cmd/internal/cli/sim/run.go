package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
)

// simRun holds the flags of `cede sim run`.
type simRun struct {
	env    *cmdutil.Env
	out    *cmdutil.Output
	policy string
	seed   uint64
	seeded bool
	timing bool
	// explain adds the reasons of evictions to results.
	explain bool
	// whatIf adds the changes that would have spared the victims; it implies explain.
	whatIf bool
	// players are the policies and their settings.
	players *simrun.PolicyFlags
	data    *simrun.OutputDir
}

func newSimRunCmd(env *cmdutil.Env) *cobra.Command {
	r := &simRun{env: env}
	cmd := &cobra.Command{
		Use:         "run FILE...",
		Short:       "Play scenarios and check their expectations",
		Annotations: cmdutil.ExitCodes("1 an expectation of a file does not hold", "7 a policy failed"),
		Long: `Play scenarios one after the other, and report what is placed, what is evicted, and what
remains unplaced and why. With -o json each result is one line.

With --output-dir the data of all runs is written as tables, one CSV and one Parquet file
each. docs/reference/datasets.md describes the columns. An interrupted command writes those
of the finished files, and names the others.

No server is contacted, and files are not changed.`,
		Example: `  cede sim run scenario.yaml
  cede sim run scenario.yaml -p nomad -o json
  cede sim run scenario.yaml --explain
  cede sim run scenario.yaml --what-if
  cede sim run scenario.yaml --output-dir data
  cede sim run a.yaml b.yaml -t '{{.scenario}} {{.metrics.victims}}'`,
		Args: cmdutil.PositionalArgs(1, -1, "one or more scenario files"),
	}
	r.out = cmdutil.OutputFlags(cmd, env)
	f := cmd.Flags()
	named := f.StringArrayP("policy", "p", nil, "play under policy `P` or P?key=value&key=value instead of that of the file")
	f.Uint64Var(&r.seed, "seed", 0, "override the seed of the file with `N`")
	f.BoolVar(&r.timing, "timing", false, "measure decisions by wall-clock time; results then differ between runs")
	f.BoolVar(&r.explain, "explain", false, "add the reasons of every eviction, as servers record them")
	f.BoolVar(&r.whatIf, "what-if", false, "add the smallest changes that would have spared each victim, with their reasons")
	r.players = simrun.AddPolicyFlags(cmd, env)
	r.data = simrun.AddOutputDirFlag(cmd, env)
	policyflags.CompletePolicyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		var problems []error
		if len(*named) > 1 {
			problems = append(problems, cmdutil.Usagef("use cede compare for several policies: cede compare "+strings.Join(files, " ")+" -p "+strings.Join(*named, " -p "),
				"-p can be used only once, not %s", cmdutil.Times(len(*named))))
		}
		r.policy = strings.Join((*named)[:min(len(*named), 1)], "")
		if f.Changed("policy") && r.policy == "" {
			problems = append(problems, simrun.EmptyPolicyName("use a policy such as -p default, or remove -p"))
		}
		r.seeded = f.Changed("seed")
		problems = append(problems, r.resolve(), r.data.Check())
		inputs := r.readAll(files)
		problems = append(problems, r.checkOutputs(inputs))
		if cmdutil.JoinProblems("the command line", problems...) != nil {
			for i := range inputs {
				problems = append(problems, inputs[i].err)
			}
			return r.players.JoinProblems(problems, scenarios(inputs), r.played())
		}
		return r.players.WithCallLog(func() error { return r.files(cmd.Context(), inputs) })
	}
	return cmd
}

// resolve checks the flags that all commands share that play scenarios.
func (r *simRun) resolve() error {
	return cmdutil.JoinProblems("the command line", r.out.Resolve(), r.players.Resolve(r.played()))
}

// An input is a file of the command line.
type input struct {
	name string
	file *simrun.ScenarioFile // nil if it cannot be read
	err  error
}

// readAll reads all files, so that every problem is found before long work.
func (r *simRun) readAll(names []string) []input {
	list := make([]input, len(names))
	for i, name := range names {
		list[i].name = name
		list[i].file, list[i].err = r.read(name)
	}
	return list
}

// scenarios returns the inputs that could be read.
func scenarios(inputs []input) (files []*simrun.ScenarioFile) {
	for i := range inputs {
		if inputs[i].file != nil {
			files = append(files, inputs[i].file)
		}
	}
	return files
}

// checkOutputs returns an error if an output of the command is one of its inputs.
func (r *simRun) checkOutputs(inputs []input, outputs ...cmdutil.OutputFile) error {
	var names []string
	for i := range inputs {
		names = append(names, inputs[i].name)
	}
	return r.players.CheckOutputs(names, scenarios(inputs), r.played(), outputs...)
}

// played returns the policy that replaces those of the files.
func (r *simRun) played() []string {
	if r.policy == "" {
		return nil
	}
	return []string{r.policy}
}

// files plays every file that could be read, after it has reported the others.
func (r *simRun) files(ctx context.Context, inputs []input) error {
	worst, names := cmdutil.ExitOK, []string{}
	var readable []*simrun.ScenarioFile
	for i := range inputs {
		if inputs[i].err != nil {
			r.env.Report(inputs[i].err)
			worst = cmdutil.MoreSevere(worst, cmdutil.ExitOf(inputs[i].err))
			continue
		}
		readable, names = append(readable, inputs[i].file), append(names, inputs[i].name)
	}
	if len(readable) == 0 {
		return cmdutil.ExitWith(worst)
	}
	if err := r.data.Start(len(readable)); err != nil {
		return err
	}
	err := r.each(ctx, readable, names, worst)
	return errors.Join(err, r.data.Close())
}

// each plays every file and writes the tables. After an interrupt it writes those of the
// finished runs, and names the files that were not played.
func (r *simRun) each(ctx context.Context, files []*simrun.ScenarioFile, names []string, worst cmdutil.Exit) error {
	for i := range files {
		err := r.file(ctx, i, files[i], names[i])
		files[i] = nil // a scenario can be large
		r.env.Report(err)
		worst = cmdutil.MoreSevere(worst, cmdutil.ExitOf(err))
		if worst == cmdutil.ExitInterrupted {
			r.reportRest(names, i)
			break
		}
	}
	if err := r.data.Write(); err != nil {
		return err
	}
	return cmdutil.ExitWith(worst)
}

// reportRest reports which files an interrupted command did not play. There is no --resume: the
// result of a finished file is printed, and its rows are in the tables, which are not written
// again.
func (r *simRun) reportRest(files []string, from int) {
	if from == 0 {
		return // nothing is finished
	}
	hint := ""
	if r.data.Enabled() {
		hint = " and another --output-dir"
	}
	rest := cmdutil.ShellCommand(append([]string{"sim", "run"}, files[from:]...))
	r.env.Warn(fmt.Sprintf("%s finished; to play the others: %s, with the same flags%s", cmdutil.Count(from, "file is", "files are"), rest, hint))
}

// read reads a scenario, with the seed of the command line.
func (r *simRun) read(name string) (*simrun.ScenarioFile, error) {
	f, err := simrun.ReadScenario(r.env, name)
	if err != nil {
		return nil, err
	}
	if r.seeded {
		f.Seed = r.seed
	}
	return f, r.players.Check(f.File, r.played())
}

// file plays one file and prints its result. i is its position on the command line.
func (r *simRun) file(ctx context.Context, i int, f *simrun.ScenarioFile, name string) error {
	run, err := r.play(ctx, i, f)
	if err != nil {
		return simrun.RunError(f, err, r.policy != "")
	}
	if r.policy != "" {
		run.Result.Policy = r.players.DisplayNames[r.policy]
	}
	for _, w := range run.Warnings {
		r.env.Warn(name + ": " + w)
	}
	differences := sim.CheckExpect(f.File, run.Result)
	if err := r.out.Show(resultDocument(f.File, run, differences)); err != nil {
		return err
	}
	worst := cmdutil.ExitOK
	for _, err := range []error{expectation(name, differences), simrun.FaultsError(name, run.Faults, r.players.OnFault)} {
		r.env.Report(err)
		worst = cmdutil.MoreSevere(worst, cmdutil.ExitOf(err))
	}
	return cmdutil.ExitWith(worst)
}

func (r *simRun) play(ctx context.Context, i int, f *simrun.ScenarioFile) (*sim.Run, error) {
	options := sim.Options{
		Policy: r.policy, Resolve: r.players.Resolver(f.File, f.Path, r.policy), Workers: r.env.Cores, Timing: r.timing, Explain: r.explain || r.whatIf, WhatIf: r.whatIf,
	}
	defer r.showProgress(f, &options)()
	return r.data.Play(i, simrun.RunID(f.File, 1, r.policyName(f)), options, func(o sim.Options) (*sim.Run, error) { return sim.Play(ctx, f.File, o) })
}

// showProgress shows the progress of a run with the given options until done is called.
func (r *simRun) showProgress(f *simrun.ScenarioFile, o *sim.Options) (done func()) {
	progress := r.env.Progress()
	o.Progress = func(p sim.Progress) {
		progress.Show(func(elapsed time.Duration) string { return simrun.FormatProgress(f.Name, p, elapsed) })
	}
	return progress.Done
}

// policyName returns the name of the scenario's policy in reports.
func (r *simRun) policyName(f *simrun.ScenarioFile) string {
	return cmp.Or(r.players.DisplayNames[r.policy], f.Scheduler.Policy, policy.DefaultName)
}

// expectation returns an error if expectations do not hold.
func expectation(name string, differences []string) error {
	if len(differences) == 0 {
		return nil
	}
	e := &cmdutil.Error{
		Exit: cmdutil.ExitError, Code: cmdutil.CodeExpectation, Details: differences,
		Message: fmt.Sprintf("%s: expectations of the file do not hold", name),
	}
	for _, d := range differences {
		e.Lines = append(e.Lines, name+": "+d)
	}
	return e
}
