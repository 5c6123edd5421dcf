package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// simRun is one `cede sim run`.
type simRun struct {
	env    *Env
	out    *output
	policy string
	seed   uint64
	seeded bool
	timing bool
	// players are the policies, and how they are run.
	players *players
}

func newSimRunCmd(env *Env) *cobra.Command {
	r := &simRun{env: env}
	cmd := &cobra.Command{
		Use:   "run FILE...",
		Short: "Play scenarios, and check what they expect",
		Long: `Play scenarios one after the other: who is placed where, who is evicted for
whom, what stays unplaced and why. With -o json, one result a line.

Exits 1 when what a file expects did not hold, 2 when a file or the command line
is wrong, and 7 when a policy was at fault.`,
		Example: `  cede sim run scenario.yaml
  cede sim run scenario.yaml -p nomad -o json
  cede sim run a.yaml b.yaml -t '{{.scenario}} {{.metrics.victims}}'`,
		Args: arguments(1, -1, "one or more scenario files"),
	}
	r.out = outputFlags(cmd, env)
	f := cmd.Flags()
	named := f.StringArrayP("policy", "p", nil, "play under policy `P` or P?key=value&key=value, whatever the file says")
	f.Uint64Var(&r.seed, "seed", 0, "replace the file's seed by `N`; it drives what a policy samples or shuffles")
	f.BoolVar(&r.timing, "timing", false, "measure decisions by the wall clock; results then differ from run to run")
	r.players = playerFlags(cmd, env)
	completePolicies(cmd)
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		if len(*named) > 1 {
			return usagef("cede compare plays several: cede compare "+strings.Join(files, " ")+" -p "+strings.Join(*named, " -p "),
				"sim run plays one policy: -p is given %s", times(len(*named)))
		}
		r.policy = strings.Join(*named, "")
		if f.Changed("policy") && r.policy == "" {
			return noPolicyNamed("name one, such as -p default, or leave -p out to play what each file says")
		}
		r.seeded = f.Changed("seed")
		if err := r.out.resolve(); err != nil {
			return err
		}
		if err := r.players.resolve(r.played()); err != nil {
			return err
		}
		return r.players.logged(func() error { return r.files(cmd.Context(), files) })
	}
	return cmd
}

// played is the policy that replaces what files say.
func (r *simRun) played() []string {
	if r.policy == "" {
		return nil
	}
	return []string{r.policy}
}

// files plays every file, whatever becomes of the others.
func (r *simRun) files(ctx context.Context, files []string) error {
	worst := ExitOK
	for _, name := range files {
		err := r.file(ctx, name)
		r.env.report(err)
		worst = graver(worst, exitOf(err))
		if worst == ExitInterrupted {
			break
		}
	}
	return told(worst)
}

// file plays one file and prints its result.
func (r *simRun) file(ctx context.Context, name string) error {
	f, err := r.env.scenario(name)
	if err != nil {
		return err
	}
	if err := r.players.check(f.File, r.played()); err != nil {
		return err
	}
	if r.seeded {
		f.Seed = r.seed
	}
	run, err := r.play(ctx, f)
	if err != nil {
		return unplayable(f, err, r.policy != "")
	}
	if r.policy != "" {
		run.Result.Policy = r.players.shown[r.policy]
	}
	for _, w := range run.Warnings {
		r.env.warn(name + ": " + w)
	}
	differences := sim.CheckExpect(f.File, run.Result)
	if err := r.out.show(resultDocument(f.File, run, differences)); err != nil {
		return err
	}
	worst := ExitOK
	for _, err := range []error{expectation(name, differences), faults(name, run.Faults, r.players.fault)} {
		r.env.report(err)
		worst = graver(worst, exitOf(err))
	}
	return told(worst)
}

func (r *simRun) play(ctx context.Context, f *scenarioFile) (*sim.Run, error) {
	app.TuneForSimulation()
	progress := r.env.progress()
	defer progress.Done()
	return sim.Play(ctx, f.File, sim.Options{
		Policy: r.policy, Resolve: r.players.resolver(f.File, f.name, r.policy), Workers: r.env.Cores, Timing: r.timing,
		Progress: func(p sim.Progress) {
			progress.Show(func(elapsed time.Duration) string { return progressLine(f.Name, p, elapsed) })
		},
	})
}

// progressLine is how far a run is.
func progressLine(name string, p sim.Progress, elapsed time.Duration) string {
	line := fmt.Sprintf("%s: at %s", name, scenario.Duration(p.Now.Truncate(time.Second)))
	if p.Until > 0 {
		line += fmt.Sprintf(" of %s", scenario.Duration(p.Until))
	}
	return line + fmt.Sprintf(", %s of %s events, %s placed, %s", thousands(p.Steps), thousands(p.StepsTotal), thousands(p.Placed), elapsed.Round(time.Second))
}

// unplayable is a file that validates but cannot be played: most often a
// policy is not there, or refuses its configuration. replaced says that -p
// stands in for the file's own choice.
func unplayable(f *scenarioFile, err error, replaced bool) error {
	var known *scenario.Error
	if errors.Is(err, context.Canceled) || errors.As(err, &known) {
		return err
	}
	if fault, ok := errors.AsType[*policy.Error](err); ok {
		e := faultError(err, fault)
		e.Message = fmt.Sprintf("%s cannot be played: %s", f.name, e.Message)
		return e
	}
	if endless, ok := errors.AsType[*sim.EndlessError](err); ok { // the file is as it should be
		return &Error{
			Exit: ExitError, Code: codeError, Message: fmt.Sprintf("%s cannot be played: %s", f.name, endless),
			Hint: "-p default shows whether it is the policy that has them displace each other",
		}
	}
	if invalid := f.policyProblems(err, replaced); invalid != nil {
		return invalid
	}
	e := asError(err)
	return &Error{
		Exit: ExitUsage, Code: codeUsage, Hint: e.Hint,
		Message: fmt.Sprintf("%s cannot be played: %s", f.name, e.Message),
	}
}

// expectation is what a file expects and did not get.
func expectation(name string, differences []string) error {
	if len(differences) == 0 {
		return nil
	}
	e := &Error{
		Exit: ExitError, Code: codeExpectation, Details: differences,
		Message: fmt.Sprintf("%s: what the file expects did not hold", name),
	}
	for _, d := range differences {
		e.lines = append(e.lines, name+": "+d)
	}
	return e
}

// mostFaults is how many faults are printed: they repeat themselves.
const mostFaults = 5

// faults are what a policy is blamed for, whose evaluations do as onFault says.
func faults(name string, list []error, onFault policy.OnFault) error {
	if len(list) == 0 {
		return nil
	}
	var lines []string
	for _, err := range list[:min(len(list), mostFaults)] {
		lines = append(lines, name+": "+err.Error())
	}
	if more := len(list) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %s more", name, thousands(more)))
	}
	instead := "an evaluation whose policy fails evicts nobody"
	if onFault == policy.FallBack {
		instead = "where the policy failed, default decided instead"
	}
	return &Error{
		Exit: ExitPolicy, Code: codePolicy, Details: lines, lines: lines,
		Message: fmt.Sprintf("%s: a policy was at fault %s", name, times(len(list))),
		Hint:    instead + "; mend the policy, or play another with -p",
	}
}
