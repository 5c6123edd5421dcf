package tune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun/runs"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/tune"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// Spaces that are searched.
const (
	ofSettings = "settings"
	ofRules    = "rules"
)

// command holds the flags of cede policy tune.
type command struct {
	env     *cmdutil.Env
	out     *cmdutil.Output
	players *simrun.PolicyFlags
	build   func(ctx context.Context, dir string) error

	on, ranges, baselines       []string
	objective, space, dir, html string
	draws, heldOutDraws, plays  int
	seed                        uint64
	resume                      bool
	policy                      string       // of the command line
	hooks                       policy.Hooks // of the policy
	goal                        *tune.Objective
	sources                     []source // of --on
}

// NewCommand returns cede policy tune. build builds the policy in a folder.
func NewCommand(env *cmdutil.Env, build func(ctx context.Context, dir string) error) *cobra.Command {
	c := &command{env: env, build: build}
	cmd := &cobra.Command{
		Use:         "tune P",
		Short:       "Search the settings of a policy, or rules, on workloads",
		Annotations: cmdutil.ExitCodes("7 a policy failed"),
		Long: `Search the settings of policy P that meet an objective best on generated workloads, and
write the best policy as a folder, with golden cases from its own decisions and a report.

Candidates race: all play the same workloads, and those that are shown to be worse are
eliminated early. Settings are searched within the values that the policy declares, which
cede policy inspect lists, or those of --range. With --space rules the candidates are
rules of a grammar instead, and P is one of the policies they are compared with.

The best candidate of a race is partly lucky. It is therefore compared with the best
baseline on held-out workloads, which are played once, at the end. The report states
"no better than" with the reason if their interval contains 0, or if a constraint is
violated or cannot be judged. The exit code is 0, and the folder is written in any case.

An objective has one or more goals, METRIC up or METRIC down, and constraints, METRIC <= P
or METRIC >= P, where P is a policy or a number. cede help metrics lists the metrics.

Each --on is a description as for cede sim generate, or the name of a preset, from which
workloads are drawn, or a scenario, of which the tie-breaks alone differ. The same
command gives the same folder and report. An interrupted search keeps its finished plays
in FOLDER.runs; the same command with --resume plays the others only.`,
		Example: `  cede policy tune least-waste --on contended --objective 'goodput up, victims <= default' -w tuned
  cede policy tune protect --on contended --objective 'pingPong down, goodput >= least-waste' --range minRuntime=0s..10m -w calm
  cede policy tune default --on contended --space rules --objective 'goodput up' -w found --plays 600`,
		Args: cmdutil.PositionalArgs(1, 1, "one policy"),
	}
	c.out = cmdutil.OutputFlags(cmd, env)
	f := cmd.Flags()
	f.StringArrayVar(&c.on, "on", nil, "draw workloads from description, preset or scenario `SPEC`; may be repeated")
	f.StringVar(&c.objective, "objective", "", "prefer policies that meet `TERMS`, such as 'goodput up, victims <= default'")
	f.StringVar(&c.space, "space", ofSettings, "search `SPACE`: settings or rules")
	f.StringArrayVar(&c.ranges, "range", nil, "search `NAME=LOW..HIGH` or NAME=VALUE,VALUE instead of the declared values of a setting")
	f.StringArrayVar(&c.baselines, "baseline", []string{policy.DefaultName, "least-waste"}, "compare the result with policy `P`; may be repeated")
	f.IntVar(&c.draws, "draws", 12, "race on `N` workloads of each --on")
	f.IntVar(&c.heldOutDraws, "held-out", 12, "hold out `N` further workloads of each --on for the final comparison")
	f.IntVar(&c.plays, "plays", 300, "play at most `N` times")
	f.Uint64Var(&c.seed, "seed", 1, "`N` is the seed of the candidates")
	f.StringVarP(&c.dir, "write", "w", "", "write the policy to `FOLDER`, with its report unless --html is given")
	f.StringVar(&c.html, "html", "", "write the report to `FILE` (default: report.html in the folder)")
	f.BoolVar(&c.resume, "resume", false, "continue an interrupted search with its finished plays")
	c.players = simrun.AddPolicyFlags(cmd, env)
	cmdutil.CompleteFlag(cmd, "space", []string{ofSettings, ofRules})
	cmd.ValidArgsFunction = policyflags.CompleteNames()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.policy = args[0]
		search, err := c.resolve(cmd)
		if err != nil {
			return err
		}
		return c.players.WithCallLog(func() error { return c.run(cmd.Context(), search) })
	}
	return cmd
}

// resolve checks the command line before a long search, and returns the search.
func (c *command) resolve(cmd *cobra.Command) (*tune.Search, error) {
	if err := c.out.Resolve(); err != nil {
		return nil, err
	}
	if err := c.checkFlags(cmd); err != nil {
		return nil, err
	}
	goal, invalid := tune.ParseObjective(c.objective)
	c.goal = goal
	var errs []error
	if invalid != nil {
		errs = append(errs, problems("--objective", invalid, "`cede policy tune --help` describes objectives"))
	}
	others := func(p string) bool { return p == c.policy }
	errs = append(errs, c.checkOutput(), c.checkBaselines(),
		c.players.Resolve(append([]string{c.policy}, slices.DeleteFunc(slices.Clone(c.baselines), others)...)))
	search := &tune.Search{Objective: goal, Baselines: c.baselines, Workloads: c.draws * len(c.on), HeldOut: c.heldOutDraws * len(c.on), Plays: c.plays, Seed: c.seed}
	var err error
	search.Space, err = c.newSpace(cmd.Context())
	if c.space == ofRules {
		search.Baselines = append([]string{c.policy}, slices.DeleteFunc(slices.Clone(c.baselines), others)...)
	}
	errs = append(errs, err, c.readSources())
	check := search.Check
	if err != nil || invalid != nil {
		check = search.CheckWorkloads
	}
	if few := check(); few != nil {
		errs = append(errs, problems("the search", few, "use more --plays, --draws or --held-out, or fewer --baseline"))
	}
	return search, cmdutil.JoinProblems("the command line", errs...)
}

// checkFlags returns an error if a required flag is missing or two contradict each other.
func (c *command) checkFlags(cmd *cobra.Command) error {
	switch {
	case len(c.on) == 0:
		return cmdutil.Usagef("add --on contended", "--on is required")
	case c.objective == "":
		return cmdutil.Usagef("add --objective 'goodput up, victims <= default'", "--objective is required")
	case c.dir == "":
		return cmdutil.Usagef("add -w tuned", "-w is required")
	case c.space != ofSettings && c.space != ofRules:
		return cmdutil.Usagef("use settings or rules", "invalid --space %q", c.space)
	case c.space == ofRules && len(c.ranges) > 0:
		return cmdutil.Usagef("remove --range", "--range cannot be combined with --space rules")
	case cmd.Flags().Changed("config"):
		return cmdutil.Usagef("write the settings as P?key=value", "--config cannot be combined with a search of settings")
	}
	return nil
}

// checkOutput returns an error if the folder or the report cannot be written.
func (c *command) checkOutput() error {
	if err := bundle.CheckName(c.policyName()); err != nil {
		return cmdutil.Usagef("use a folder such as tuned", "-w %s: %v", c.dir, err)
	}
	if slices.Contains(builtin.Names(), c.policyName()) {
		return cmdutil.Usagef("choose another folder", "-w %s: %s is the name of a built-in policy", c.dir, c.policyName())
	}
	if err := c.checkEmpty(); err != nil {
		return err
	}
	policies := append([]string{c.policy}, c.baselines...)
	if c.html != "" {
		return c.players.CheckOutputs(c.on, nil, policies, cmdutil.OutputFile{Flag: "--html", Name: c.html})
	}
	c.html = filepath.Join(c.dir, "report.html") // in a new folder
	return c.players.CheckOutputs(c.on, nil, policies)
}

// checkEmpty returns an error if the folder contains anything.
func (c *command) checkEmpty() error {
	entries, err := os.ReadDir(c.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return cmdutil.Usagef("use a new folder; nothing was changed", "cannot write to folder: %v", err)
	case len(entries) == 0:
		return nil
	}
	hint := "use a new folder; nothing was changed"
	if c.resume {
		hint = "remove the folder if an interrupted search wrote it; nothing was changed"
	}
	return cmdutil.Usagef(hint, "folder %s is not empty", c.dir)
}

// checkBaselines returns an error if a baseline is empty or repeated.
func (c *command) checkBaselines() error {
	for i, p := range c.baselines {
		if p == "" {
			return simrun.EmptyPolicyName("use --baseline default")
		}
		if slices.Contains(c.baselines[:i], p) {
			return cmdutil.Usagef("remove one", "duplicate --baseline %s", p)
		}
	}
	return nil
}

// policyName returns the name of the policy that is written.
func (c *command) policyName() string { return filepath.Base(filepath.Clean(c.dir)) }

// runsFile returns the name of the file with the finished plays.
func (c *command) runsFile() string { return filepath.Clean(c.dir) + ".runs" }

// problems returns a usage error that lists every problem of an argument.
func problems(argument string, err error, hint string) error {
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 1 {
		return cmdutil.Usagef(hint, "%s: %v", argument, err)
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitUsage, Code: cmdutil.CodeUsage, Message: fmt.Sprintf("%s has %d problems", argument, len(lines)), Hint: hint, Lines: lines, Details: lines,
	}
}

// newSpace opens the policy and returns the space of the search.
func (c *command) newSpace(ctx context.Context) (*tune.Space, error) {
	p, err := policyflags.OpenPolicy(ctx, c.env, policies.Request{PolicySpec: sim.PolicySpec{Name: c.policy, Use: c.policy}})
	if err != nil {
		return nil, policyflags.WrapError(c.policy, err)
	}
	p.AddRef()
	defer p.ReleaseRef()
	c.hooks = p.Hooks()
	if c.space == ofRules {
		return rulesSpace(), nil
	}
	if policies.InlineName(c.policy) != "" {
		return nil, cmdutil.Usagef("name a policy with settings, or add --space rules", "%s has no settings to search", policies.InlineName(c.policy))
	}
	spec, err := builtin.Parse(c.policy)
	if err != nil {
		return nil, policyflags.WrapError(c.policy, err)
	}
	var errs []error
	ranges := map[string]string{}
	for _, text := range c.ranges {
		name, values, ok := strings.Cut(text, "=")
		switch {
		case !ok || values == "":
			errs = append(errs, fmt.Errorf("invalid --range %q: use NAME=LOW..HIGH or NAME=VALUE,VALUE", text))
		case ranges[name] != "":
			errs = append(errs, fmt.Errorf("duplicate --range %s: remove one", name))
		default:
			ranges[name] = values
		}
	}
	space, err := settingsSpace(spec, p.Settings(), ranges)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, problems("the search of "+c.policy, err, "`cede policy inspect "+c.policy+"` lists the settings and their values")
	}
	return space, nil
}

// run searches, and writes the folder and the report.
func (c *command) run(ctx context.Context, search *tune.Search) (err error) {
	store := runs.NewStore(c.env, c.runsFile(), true)
	if err := store.Open(c.resume); err != nil {
		return err
	}
	p := &player{command: c, store: store, inputs: map[string]*runs.Input{}, results: map[tune.Play]*runs.Run{}, progress: c.env.Progress()}
	defer p.progress.Done()
	if p.race, err = c.workloads(0, c.draws); err != nil {
		return err
	}
	if p.heldOut, err = c.workloads(c.draws, c.heldOutDraws); err != nil {
		return err
	}
	if err := checkDistinct(slices.Concat(p.race, p.heldOut)); err != nil {
		return err
	}
	search.Play, search.Round = p.play, p.note
	search.Accept = func(policy string) bool { return p.accept(policy) == nil }
	for _, name := range search.Policies() {
		if err := p.accept(name); err != nil {
			return simrun.RunError(p.race[0].ScenarioFile, err, true)
		}
	}
	if err := c.env.Files.MakeDir(filepath.Dir(filepath.Clean(c.dir))); err != nil {
		return cmdutil.WriteError(c.dir, err)
	}
	if err := c.env.CheckWritable(c.runsFile()); err != nil {
		return err
	}
	result, err := search.Run(ctx)
	p.progress.Done()
	if err != nil {
		p.store.Interrupted()
		return err
	}
	v, err := p.write(ctx, result)
	if err != nil {
		p.store.Interrupted()
		return err
	}
	if err := p.store.Remove(); err != nil {
		c.env.Report(err)
	}
	return c.out.Show(cmdutil.Document{Data: v, Names: []string{c.policyName()}, Page: v.page})
}
