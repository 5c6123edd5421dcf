package sim

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/steps"
)

// newSimStepCmd returns `cede sim step`. It plays as `cede sim run` does; its output is the
// dialogue.
func newSimStepCmd(env *cmdutil.Env) *cobra.Command {
	r := &simRun{env: env}
	full := false
	cmd := &cobra.Command{
		Use:         "step FILE",
		Short:       "Play a scenario whose decisions are answered on stdin",
		Annotations: cmdutil.ExitCodes("7 a policy failed"),
		Long: `Play a scenario and pause at every call of the policy. The call is written to standard
output as one line of JSON, with the columns that the policy reads and its own answer.
The next JSON value on standard input is used instead:

  {}                          the answer of the policy
  {"eligible": [true, …]}     the rows that may be evicted
  {"score": [1.5, null, …]}   the order of rows, lowest first; null excludes; also "tier"
  {"picks": [[0, 2], …]}      instead of "score": the rows of each option, in order
  {"option": 1}               ScoreOptions: the best option; or "score" and "tiers"

The last line holds the result, as cede sim run prints it, or an error. Answers of {}
alone lead to the result of cede sim run. An invalid answer ends the run with exit code 2.

A policy may declare properties by which rows and options are omitted that it would not
choose. --full requests all of them, and all columns. docs/reference/steps.md describes
the lines. No server is contacted.`,
		Example: `  yes '{}' | cede sim step scenario.yaml
  yes '{}' | cede sim step scenario.yaml -p least-waste --full`,
		Args: cmdutil.PositionalArgs(1, 1, "one scenario file"),
	}
	f := cmd.Flags()
	f.StringVarP(&r.policy, "policy", "p", "", "play under policy `P` or P?key=value&key=value instead of that of the file")
	f.Uint64Var(&r.seed, "seed", 0, "override the seed of the file with `N`")
	f.BoolVar(&full, "full", false, "request all columns, rows and options")
	r.players = simrun.AddPolicyFlags(cmd, env)
	policyflags.CompletePolicyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		var problems []error
		if f.Changed("policy") && r.policy == "" {
			problems = append(problems, simrun.EmptyPolicyName("use a policy such as -p default, or remove -p"))
		}
		r.seeded = f.Changed("seed")
		problems = append(problems, r.players.Resolve(r.played()))
		var inputs []input
		if files[0] == cmdutil.Stdin {
			problems = append(problems, cmdutil.Usagef("write the scenario to a file", "standard input holds the answers, not the scenario"))
		} else {
			inputs = r.readAll(files)
			problems = append(problems, inputs[0].err, r.checkOutputs(inputs))
		}
		if err := r.players.JoinProblems(problems, scenarios(inputs), r.played()); err != nil {
			return err
		}
		return r.players.WithCallLog(func() error { return r.step(cmd.Context(), inputs[0].file, files[0], full) })
	}
	return cmd
}

// step plays one file as a dialogue.
func (r *simRun) step(ctx context.Context, f *simrun.ScenarioFile, name string, full bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := steps.New(r.env.Stdin, r.env.Stdout)
	s.Full, s.Stop = full, cancel
	policyName := r.policyName(f)
	if err := s.Begin(f.File, policyName); err != nil {
		return cmdutil.WriteError("standard output", err)
	}
	resolve := r.players.Resolver(f.File, f.Path, r.policy)
	run, err := sim.Play(ctx, f.File, sim.Options{
		Policy: r.policy, Workers: 1, Timeline: s.Event,
		Resolve: func(spec sim.PolicySpec) (*policy.Version, error) {
			v, err := resolve(spec)
			if err != nil {
				return nil, err
			}
			return s.Wrap(v)
		},
	})
	if run != nil && r.policy != "" {
		run.Result.Policy = policyName
	}
	if end := s.Finish(run); end != nil {
		if defect, ok := errors.AsType[*steps.Error](end); ok {
			return cmdutil.Usagef("`cede sim step --help` describes the answers", "%s: %v", name, defect)
		}
		return cmdutil.WriteError("standard output", end)
	}
	if err != nil {
		return simrun.RunError(f, err, r.policy != "")
	}
	return simrun.FaultsError(name, run.Faults, r.players.OnFault)
}
