package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// comparison is one `cede compare`.
type comparison struct {
	env        *Env
	players    *players
	out        *output
	policies   []string
	seeds      int
	html       string
	vars       []string // of the job file of --what-if
	conditions []condition
	timing     bool
}

// condition is one --fail-if.
type condition struct {
	*compare.Expression
	asWritten bool // it names policies as -p does, and not as results do
}

func newCompareCmd(env *Env) *cobra.Command {
	c := &comparison{env: env}
	cmd := &cobra.Command{
		Use:   "compare FILE... -p P -p Q ...",
		Short: "Play scenarios under several policies, and say how they differ",
		Long: `Play every file under every policy, with as many seeds as asked for, and say how
the policies differ: by each metric, and in the first decisions that part them.
The first policy is the one that the others are measured against.

Run 1 decides ties by id, as ` + "`cede sim run`" + ` does; the runs of further seeds decide
them otherwise, so that a difference can be told from luck.

With --what-if nothing is played but one instant: the work of a manifest comes
to the cluster as it is, and the answer says whom each policy would evict for it.`,
		Example: `  cede compare scenario.yaml -p default -p nomad
  cede compare a.yaml b.yaml -p default -p nomad --seeds 11 --html report.html
  cede compare cluster.yaml -p kubernetes -p my.wasm --what-if pod.yaml
  cede compare scenario.yaml -p default -p nomad --fail-if 'victims(nomad) > 2 * victims(default)'`,
		Args: arguments(1, -1, "one or more scenario files"),
	}
	c.out = outputFlags(cmd, env)
	f := cmd.Flags()
	f.StringArrayVarP(&c.policies, "policy", "p", nil, "compare this policy, `P` or P?key=value&key=value; give two or more")
	f.IntVar(&c.seeds, "seeds", 1, "play each file `N` times under each policy")
	f.StringVar(&c.html, "html", "", "write a report with charts to `FILE`")
	failIf := f.StringArray("fail-if", nil, "exit with 8 when `EXPR` holds of the comparison; see cede help fail-if")
	f.BoolVar(&c.timing, "timing", false, "measure decisions by the wall clock; results then differ from run to run")
	work := f.String("what-if", "", "play nothing, but ask whom the work of `FILE` would evict if it came now: a manifest of a Pod, Deployment, StatefulSet, DaemonSet or Job, or a job file")
	f.StringArrayVar(&c.vars, "var", nil, "give a variable of --what-if's job file a value, as `NAME=VALUE`")
	c.players = playerFlags(cmd, env)
	completePolicies(cmd)
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		resolve := c.resolve
		if *work != "" {
			resolve = c.resolveWhatIf
		}
		if err := resolve(*failIf); err != nil {
			return err
		}
		return c.players.logged(func() error {
			if *work != "" {
				return c.whatIf(cmd.Context(), files, *work)
			}
			return c.files(cmd.Context(), files)
		})
	}
	return cmd
}

// resolve checks everything that can be checked before a long run.
func (c *comparison) resolve(failIf []string) error {
	if len(c.vars) > 0 {
		return usagef("name the job file with --what-if", "--var gives a variable of a job file a value, and there is no job file")
	}
	if err := c.check(2, "compare takes two or more policies"); err != nil {
		return err
	}
	if c.html != "" {
		if err := c.env.writable(c.html); err != nil {
			return err
		}
	}
	return c.parse(failIf)
}

// check checks what every comparison needs.
func (c *comparison) check(policies int, takes string) error {
	if err := c.out.resolve(); err != nil {
		return err
	}
	if len(c.policies) < policies {
		return usagef("name them as in -p default -p nomad", "%s: %d given", takes, len(c.policies))
	}
	for i, p := range c.policies {
		if p == "" {
			return noPolicyNamed("name them as in -p default -p nomad")
		}
		if slices.Contains(c.policies[:i], p) {
			return usagef("leave one out, or configure them differently: P?key=value", "-p %s is given twice", p)
		}
	}
	if c.seeds < 1 {
		return usagef("ask for 1 or more", "--seeds %d: how often shall each file be played?", c.seeds)
	}
	return c.players.resolve(c.policies)
}

// parse reads conditions. They may name policies as results do, or as -p does.
func (c *comparison) parse(failIf []string) error {
	var shown []string
	for _, p := range c.policies {
		shown = append(shown, c.players.shown[p])
	}
	for _, text := range failIf {
		expression, err := compare.ParseExpression(text, shown)
		asWritten := false
		if err != nil {
			if other, otherErr := compare.ParseExpression(text, c.policies); otherErr == nil {
				expression, err, asWritten = other, nil, true
			}
		}
		if err != nil {
			return usagef("`cede help fail-if` describes conditions", "--fail-if: %v", err)
		}
		c.conditions = append(c.conditions, condition{expression, asWritten})
	}
	return nil
}

// files plays everything and prints the comparison.
func (c *comparison) files(ctx context.Context, files []string) error {
	season := newSeason(c, len(files))
	defer season.progress.Done()
	seen := map[string]string{} // by the scenario's name, the file
	for _, name := range files {
		f, err := c.env.scenario(name)
		if err != nil {
			return err
		}
		if other, twice := seen[f.Name]; twice {
			return usagef("name scenarios differently", "%s and %s are both scenarios named %s, which could not be told apart", other, name, f.Name)
		}
		seen[f.Name] = name
		if err := c.players.check(f.File, c.policies); err != nil {
			return err
		}
		if err := season.play(ctx, name, f.File); err != nil {
			return unplayable(f, err, true)
		}
	}
	season.progress.Done()
	for _, w := range season.warnings {
		c.env.warn(w)
	}
	return c.conclude(season)
}

// conclude prints what was found and checks the conditions.
func (c *comparison) conclude(season *season) error {
	d := compare.New(season.named())
	if err := c.out.show(comparisonDocument(c.env, d)); err != nil {
		return err
	}
	worst := ExitOK
	note := func(err error) {
		c.env.report(err)
		worst = graver(worst, exitOf(err))
	}
	if c.html != "" {
		note(c.report(d))
	}
	for _, err := range season.faults {
		note(err)
	}
	for _, condition := range c.conditions {
		about := d
		if condition.asWritten {
			about = compare.New(season.runs)
		}
		note(check(condition.Expression, about))
	}
	return told(worst)
}

// check is the error that a condition asks for.
func check(condition *compare.Expression, d *compare.Document) error {
	holds, figures, err := condition.Holds(d)
	switch {
	case errors.Is(err, compare.ErrAbsent):
		return usagef("what was played cannot show everything: ask for something else, or play something else", "--fail-if %s: %v", condition, err)
	case err != nil:
		return usagef("", "--fail-if %s: %v", condition, err)
	case holds:
		return &Error{Exit: ExitCheck, Code: codeCheck, Message: fmt.Sprintf("--fail-if holds: %s", condition), Details: figures, lines: figures}
	}
	return nil
}

// seeded is a file that is played with another seed.
func seeded(f *scenario.File, seed uint64) *scenario.File {
	other := *f
	other.Seed = seed
	return &other
}
