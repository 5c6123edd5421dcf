package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/condition"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// comparison holds the flags of `cede compare`.
type comparison struct {
	env        *cmdutil.Env
	players    *simrun.PolicyFlags
	out        *cmdutil.Output
	data       *simrun.OutputDir // nil if the scenario is not a file
	policies   []string
	seeds      int
	draws      int // scenarios per description; 0 if the arguments are scenarios
	html       string
	vars       []string // variables of the job file of --what-if
	conditions []failIf
	timing     bool
	resume     bool
	live       bool // the scenario is not a file, so that a later command cannot resume
	bound      bool
	boundSteps int64 // per decision
	stepsSet   bool  // --bound-steps was given
	drawsSet   bool  // --draws was given
}

// failIf is an expression of --fail-if.
type failIf struct {
	*condition.Expression
	asWritten bool // policies are named as in -p, not as in results
}

// NewCommand returns `cede compare`.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	c := &comparison{env: env}
	cmd := &cobra.Command{
		Use:         "compare FILE... -p P -p Q ...",
		Short:       "Compare policies on the same scenarios",
		Annotations: cmdutil.ExitCodes("6 a policy cannot place the workload of --what-if", "7 a policy failed", "8 an expression of --fail-if holds"),
		Long: `Play every scenario under every policy, with the given number of seeds, and report how
the policies differ: by each metric, and in the first decisions that differ. The
first policy is the baseline.

Run 1 breaks ties by ID, as cede sim run does. Runs of further seeds break ties
differently, so that a difference between policies can be distinguished from chance.

Other tie-breaks do not make another workload. With --draws, each FILE is a description
as for cede sim generate, or the name of a preset, and N scenarios are generated from it,
with consecutive seeds. Intervals then cover both: each resample draws workloads, and runs
of each workload. Scenario files with the same name and different seeds count as draws.

An interrupted comparison keeps its finished runs in a file beside that of --html, or in
compare-DIGEST.runs, whose name depends on the files, policies and settings. The same
command with --resume plays the others only. It is refused if a scenario, a policy or cede
itself has changed, or if a run in the file does not match its checksum. Without --resume
a comparison is refused while that file exists, because it would replace the finished
runs. Files of earlier versions of cede have no checksums, and cannot be continued.

With --bound, each evaluation that evicts or leaves work unplaced is compared with the
cheapest possible answer over the whole cluster. The report states how far each policy
is from it, and which victims the best answers evict. If a search ends at --bound-steps,
its lower bound counts: it is valid, but the decision may not be proven optimal.
A place that moves need is not proven, so such an answer is a bound only.

With --output-dir the data of all runs is written as tables, one CSV and one Parquet file
each. docs/reference/datasets.md describes the columns. Runs that --resume skips have no
such data, so the two flags cannot be combined.

With --what-if nothing is played. Instead the workload of a manifest is submitted to
the cluster of each scenario, and the report shows what each policy would evict.`,
		Example: `  cede compare scenario.yaml -p default -p nomad
  cede compare a.yaml b.yaml -p default -p nomad --seeds 11 --html report.html
  cede compare contended -p default -p least-waste --draws 8
  cede compare contended -p default -p least-waste --draws 2 --bound
  cede compare cluster.yaml -p kubernetes -p my.wasm --what-if pod.yaml
  cede compare a.yaml b.yaml -p default -p nomad --output-dir data
  cede compare scenario.yaml -p default -p nomad --fail-if 'victims(nomad) > 2 * victims(default)'`,
		Args: cmdutil.PositionalArgs(1, -1, "one or more scenario files"),
	}
	c.out = cmdutil.OutputFlags(cmd, env)
	f := cmd.Flags()
	f.StringArrayVarP(&c.policies, "policy", "p", nil, "compare policy `P` or P?key=value&key=value; two or more are required")
	f.IntVar(&c.seeds, "seeds", 1, "play each file with `N` seeds under each policy")
	f.IntVar(&c.draws, "draws", 0, "generate `N` scenarios from each description and compare over all of them")
	f.StringVar(&c.html, "html", "", "write a report with charts to `FILE`")
	failIf := f.StringArray("fail-if", nil, "exit with code 8 if `EXPR` holds; see cede help fail-if")
	f.BoolVar(&c.timing, "timing", false, "measure decisions by wall-clock time; results then differ between runs")
	f.BoolVar(&c.resume, "resume", false, "continue an interrupted comparison with its finished runs")
	f.BoolVar(&c.bound, "bound", false, "compare each decision with the best possible answer; see cede help metrics")
	f.Int64Var(&c.boundSteps, "bound-steps", bound.DefaultLimit, "stop the search for the best answer to a decision after `N` steps")
	work := f.String("what-if", "", "show what the workload of `FILE` would evict now: a manifest of a Pod, Deployment, StatefulSet, DaemonSet or Job, or a job file")
	f.StringArrayVar(&c.vars, "var", nil, "set a variable of the job file of --what-if by `NAME=VALUE`")
	c.players = simrun.AddPolicyFlags(cmd, env)
	c.data = simrun.AddOutputDirFlag(cmd, env)
	policyflags.CompletePolicyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		c.stepsSet, c.drawsSet = cmd.Flags().Changed("bound-steps"), cmd.Flags().Changed("draws")
		if cmd.Flags().Changed("what-if") {
			return c.runWhatIf(cmd.Context(), files, *work, *failIf)
		}
		return c.run(cmd.Context(), files, *failIf)
	}
	return cmd
}

// resolve checks the flags before a long run, and returns all problems.
func (c *comparison) resolve(failIf []string) error {
	problems := []error{c.out.Resolve()}
	if len(c.vars) > 0 {
		problems = append(problems, cmdutil.Usagef("add --what-if FILE", "--var requires --what-if with a job file"))
	}
	if c.resume && c.data.Enabled() {
		problems = append(problems, cmdutil.Usagef("remove --resume to play all runs, or remove --output-dir", "--output-dir cannot be combined with --resume: stored runs hold no tables"))
	}
	problems = append(problems, c.check(2, "cede compare expects two or more policies"), c.parse(failIf))
	return cmdutil.JoinProblems("the command line", problems...)
}

// check checks the policies and the numbers of the command line.
func (c *comparison) check(policies int, expected string) error {
	var problems []error
	add := func(hint, format string, args ...any) {
		problems = append(problems, cmdutil.Usagef(hint, format, args...))
	}
	if len(c.policies) < policies {
		add("use -p default -p nomad", "%s: %d given", expected, len(c.policies))
	}
	for i, p := range c.policies {
		if p == "" {
			problems = append(problems, simrun.EmptyPolicyName("use -p default -p nomad"))
		} else if slices.Contains(c.policies[:i], p) {
			add("remove one, or configure them differently: P?key=value", "duplicate -p %s", p)
		}
	}
	if c.seeds < 1 {
		add("use 1 or more", "--seeds must be at least 1, not %d", c.seeds)
	}
	if c.stepsSet && !c.bound {
		add("add --bound", "--bound-steps requires --bound")
	}
	if c.bound && c.boundSteps < 1 {
		add("use 1 or more", "--bound-steps must be at least 1, not %d", c.boundSteps)
	}
	if c.draws < 0 || c.draws > maxDraws || c.drawsSet && c.draws == 0 {
		add(fmt.Sprintf("use 1 to %d", maxDraws), "--draws must be between 1 and %d, not %d", maxDraws, c.draws)
	}
	problems = append(problems, c.players.Resolve(c.policies))
	return cmdutil.JoinProblems("the command line", problems...)
}

// parse parses conditions, and returns all problems. They name policies as in results or as in
// -p.
func (c *comparison) parse(texts []string) error {
	var shown []string
	for _, p := range c.policies {
		shown = append(shown, c.players.DisplayNames[p])
	}
	var problems []error
	for _, text := range texts {
		expression, err := condition.Parse(text, shown)
		asWritten := false
		if err != nil {
			if other, otherErr := condition.Parse(text, c.policies); otherErr == nil {
				expression, err, asWritten = other, nil, true
			}
		}
		if err != nil {
			problems = append(problems, cmdutil.Usagef("`cede help fail-if` describes conditions", "--fail-if: %v", err))
			continue
		}
		c.conditions = append(c.conditions, failIf{expression, asWritten})
	}
	return cmdutil.JoinProblems("the command line", problems...)
}

// run reads all files and plays them. Its error lists all problems of the command line and of
// the files, before anything is played.
func (c *comparison) run(ctx context.Context, files, failIf []string) error {
	problems := []error{c.resolve(failIf)}
	sources, err := c.readAll(files)
	problems = append(problems, err, c.data.Check(),
		c.players.CheckOutputs(files, scenarios(sources), c.policies, cmdutil.OutputFile{Flag: "--html", Name: c.html}))
	if err := c.players.JoinProblems(problems, scenarios(sources), c.policies); err != nil {
		return err
	}
	list, err := c.generate(sources)
	if err != nil {
		return err
	}
	return c.players.WithCallLog(func() error { return c.play(ctx, list) })
}

// play plays all workloads and prints the comparison.
func (c *comparison) play(ctx context.Context, list []*workload) error {
	store, err := newRunStore(c, list)
	if err != nil {
		return err
	}
	runs := newRunSet(c, store)
	err = runs.play(ctx, list)
	runs.progress.Done()
	if err != nil {
		store.Interrupted()
		return errors.Join(err, c.data.Close())
	}
	if err := errors.Join(c.data.Write(), c.data.Close()); err != nil {
		return err
	}
	if err := store.Remove(); err != nil {
		c.env.Report(err)
	}
	for _, w := range runs.warnings {
		c.env.Warn(w)
	}
	return c.conclude(runs)
}

// conclude prints the report and checks the conditions.
func (c *comparison) conclude(runs *runSet) error {
	runs.numberDraws()
	d := compare.New(runs.namedRuns())
	d.Provenance = compare.Provenance{Command: cmdutil.RepeatableCommand(c.env.Args), Program: c.env.Build.Version, Versions: runs.versions}
	if err := c.out.Show(comparisonDocument(c.env, d)); err != nil {
		return err
	}
	worst := cmdutil.ExitOK
	note := func(err error) {
		c.env.Report(err)
		worst = cmdutil.MoreSevere(worst, cmdutil.ExitOf(err))
	}
	if c.html != "" {
		note(c.report(d))
	}
	for _, err := range runs.faults {
		note(err)
	}
	for _, f := range c.conditions {
		about := d
		if f.asWritten {
			about = compare.New(runs.runs)
		}
		note(check(f.Expression, about))
	}
	return cmdutil.ExitWith(worst)
}

// check returns an error if a condition of --fail-if holds.
func check(expression *condition.Expression, d *compare.Document) error {
	holds, figures, err := expression.Holds(d)
	switch {
	case errors.Is(err, condition.ErrAbsent):
		return cmdutil.Usagef("the metric has no value in these runs; use another expression or other scenarios", "--fail-if %s: %v", expression, err)
	case err != nil:
		return cmdutil.Usagef("", "--fail-if %s: %v", expression, err)
	case holds:
		return &cmdutil.Error{Exit: cmdutil.ExitCheck, Code: cmdutil.CodeCheck, Message: fmt.Sprintf("--fail-if holds: %s", expression), Details: figures, Lines: figures}
	}
	return nil
}

// seeded is a file that is played with another seed.
func seeded(f *scenario.File, seed uint64) *scenario.File {
	other := *f
	other.Seed = seed
	return &other
}
