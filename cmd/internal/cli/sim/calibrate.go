package sim

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/calibrate"
	"github.com/cede-scheduler/cede/core/sim/importer"
)

// calibration is the output of `cede sim calibrate`.
type calibration struct {
	Scenario string `json:"scenario"`
	Timeline string `json:"timeline"`
	Policy   string `json:"policy"`
	*calibrate.Report
	File    string                `json:"file,omitempty"`    // with the parameters
	Changed []calibrate.Parameter `json:"changed,omitempty"` // in File
}

func newSimCalibrateCmd(env *cmdutil.Env) *cobra.Command {
	r, to := &simRun{env: env}, ""
	cmd := &cobra.Command{
		Use:         "calibrate FILE TIMELINE",
		Short:       "Measure how close a replay is to a recording",
		Annotations: cmdutil.ExitCodes("7 a policy failed"),
		Long: `Play a scenario and compare the durations of its instances, the times that they take to
stop, and the delays of their starts with recorded ones. The errors are reported as
numbers, with quantiles.

TIMELINE is a CSV file with the columns at_s, kind and alloc, as --output-dir of
cede sim run writes it. An instance that the scenario does not have is an error.

With -w, a copy of the scenario is written whose groups have the medians of the recorded
durations and kill times. No server is contacted.`,
		Example: "  cede sim calibrate monday.yaml timeline.csv\n  cede sim calibrate monday.yaml timeline.csv -w calibrated.yaml -o json",
		Args:    cmdutil.PositionalArgs(2, 2, "a scenario and a recorded timeline"),
	}
	r.out = cmdutil.OutputFlags(cmd, env)
	writeFlag(cmd, &to)
	cmd.Flags().StringVarP(&r.policy, "policy", "p", "", "play under policy `P` or P?key=value&key=value")
	r.players = simrun.AddPolicyFlags(cmd, env)
	policyflags.CompletePolicyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		problems := []error{r.resolve()}
		inputs := r.readAll(args[:1])
		lives, err := r.timeline(args[1], inputs[0].file)
		problems = append(problems, inputs[0].err, err, r.checkOutputs(append(inputs, input{name: args[1]}), cmdutil.OutputFile{Flag: "-w", Name: to}))
		if err := r.players.JoinProblems(problems, scenarios(inputs), r.played()); err != nil {
			return err
		}
		return r.players.WithCallLog(func() error { return r.calibrate(cmd.Context(), inputs[0], args[1], lives, to) })
	}
	return cmd
}

// timeline reads a recorded timeline of a scenario. Without a scenario, which could not be read,
// it only checks that the file can be opened.
func (r *simRun) timeline(recorded string, f *simrun.ScenarioFile) (*calibrate.Lives, error) {
	if recorded == cmdutil.Stdin {
		return nil, cmdutil.Usagef("write it to a file", "the timeline cannot be read from standard input")
	}
	src, err := importer.Open(recorded)
	if err != nil {
		return nil, cmdutil.ReadError(recorded, err)
	}
	if src.File == "" {
		return nil, cmdutil.Usagef("use the file timeline.csv of the folder", "%s is a folder", recorded)
	}
	if f == nil {
		return nil, nil //nolint:nilnil // the caller has an error of the scenario
	}
	lives, err := calibrate.Read(src, filepath.Base(recorded), f.File)
	if err != nil {
		return nil, invalidTimeline(recorded, located(filepath.Dir(recorded), err))
	}
	return lives, nil
}

// invalidTimeline returns the error of a timeline with one problem per line.
func invalidTimeline(name, problems string) error {
	e := &cmdutil.Error{
		Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: problems,
		Hint: "the timeline must be that of the scenario; `cede sim calibrate --help` describes its columns",
	}
	if lines := strings.Split(problems, "\n"); len(lines) > 1 {
		e.Message, e.Lines, e.Details = fmt.Sprintf("%s has %d problems", name, len(lines)), lines, lines
	}
	return e
}

func (r *simRun) calibrate(ctx context.Context, in input, recorded string, lives *calibrate.Lives, to string) error {
	f, name := in.file, in.name
	replayed := calibrate.NewLives()
	options := sim.Options{
		Policy: r.policy, Resolve: r.players.Resolver(f.File, f.Path, r.policy), Workers: r.env.Cores, Timeline: replayed.Observe,
	}
	done := r.showProgress(f, &options)
	run, err := sim.Play(ctx, f.File, options)
	done()
	if err != nil {
		return r.unreplayable(f, err)
	}
	c := calibration{Scenario: f.Name, Timeline: recorded, Policy: cmp.Or(r.players.DisplayNames[r.policy], run.Result.Policy), Report: calibrate.Compare(f.File, lives, replayed)}
	if to != "" {
		with, changed := calibrate.Set(f.File, lives)
		if err := simrun.WriteScenario(r.env, to, with); err != nil {
			return err
		}
		c.File, c.Changed = to, changed
	}
	if to == cmdutil.Stdin {
		return simrun.FaultsError(name, run.Faults, r.players.OnFault) // standard output has the scenario
	}
	if err := r.out.Show(cmdutil.Document{Data: c, Names: []string{c.Scenario}, Page: c.page}); err != nil {
		return err
	}
	return simrun.FaultsError(name, run.Faults, r.players.OnFault)
}

func (c *calibration) page(p cmdutil.Page) {
	p.Properties("scenario", c.Scenario, "policy", c.Policy, "instances",
		fmt.Sprintf("%s recorded, %s replayed, %s in both", cmdutil.Thousands(c.Recorded), cmdutil.Thousands(c.Replayed), cmdutil.Thousands(c.Both)))
	p.Title("Seconds")
	t := cmdutil.NewTable("MEASURE", "PAIRS", "RECORDED P50", "REPLAYED P50", "ERROR P50", "P90", "P99", "MAX", "BIAS", "RELATIVE")
	for i := range c.Measures {
		m := &c.Measures[i]
		relative := "-"
		if m.Relative != nil {
			relative = fmt.Sprintf("%.1f %%", 100**m.Relative)
		}
		t.Row(m.Name, cmdutil.Thousands(m.Pairs), number(m.Recorded.P50), number(m.Replayed.P50), number(m.Error.P50), number(m.Error.P90),
			number(m.Error.P99), number(m.Error.Max), number(m.Bias), relative)
	}
	p.Table(t)
	if c.File != "" {
		p.Printf("%s: %s of groups set to recorded medians\n", c.File, cmdutil.Count(len(c.Changed), "parameter", "parameters"))
	}
}

// number formats seconds, which may be absent.
func number(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.3g", *x)
}
