package sim

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim/generate"
)

// simGenerate holds the flags of `cede sim generate`.
type simGenerate struct {
	env    *cmdutil.Env
	out    *cmdutil.Output
	to     string
	seed   uint64
	seeded bool
}

func newSimGenerateCmd(env *cmdutil.Env) *cobra.Command {
	g := &simGenerate{env: env}
	cmd := &cobra.Command{
		Use:   "generate SPEC -w OUT",
		Short: "Generate a scenario from a description",
		Long: `Generate a scenario from a description: a cluster, classes of jobs with their sizes and
arrivals, the load of each priority, and failures. The same description and seed
produce the same bytes. SPEC is a YAML or JSON file, or one of

` + presetList() + `

The scenario is not played.`,
		Example: "  cede sim generate contended -w contended.yaml",
		Args:    cmdutil.PositionalArgs(1, 1, "a file or the name of a preset"),
	}
	for _, p := range generate.Presets() {
		cmd.ValidArgs = append(cmd.ValidArgs, p.Name+"\t"+p.Description)
	}
	g.out = cmdutil.OutputFlags(cmd, env)
	writeFlag(cmd, &g.to)
	cmd.Flags().Uint64Var(&g.seed, "seed", 0, "override the seed of the description with `N`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		g.seeded = cmd.Flags().Changed("seed")
		spec, err := simrun.ReadDescription(env, args[0])
		if err := cmdutil.JoinProblems("the command line", g.out.Resolve(), requireWriteFlag(env, g.to, args[0]), err); err != nil {
			return err
		}
		return g.run(args[0], spec)
	}
	return cmd
}

func presetList() string {
	var b strings.Builder
	t := &term.Table{Indent: "  ", NoHeaders: true, Columns: make([]term.Column, 2)}
	for _, p := range generate.Presets() {
		t.Row(p.Name, p.Description)
	}
	_ = t.Write(&b, term.Style{}) // writes to memory do not fail
	return strings.TrimSuffix(b.String(), "\n")
}

func (g *simGenerate) run(name string, spec *generate.Spec) error {
	if g.seeded {
		spec.Seed = g.seed
	}
	progress := g.env.Progress()
	defer progress.Done()
	f, report, err := simrun.Generate(name, spec, func(p generate.Progress) {
		progress.Show(func(elapsed time.Duration) string { return generateLine(spec.Name, p, 0, elapsed) })
	})
	if err != nil {
		return err
	}
	all := generate.Progress{Jobs: len(f.Jobs), Share: 1}
	err = simrun.WriteObserved(g.env, g.to, f, func(done, total int) {
		progress.Show(func(elapsed time.Duration) string {
			return generateLine(spec.Name, all, float64(done)/float64(total), elapsed)
		})
	})
	progress.Done()
	if err != nil {
		return err
	}
	if g.to == cmdutil.Stdin {
		_, _ = io.WriteString(g.env.Stderr, report.String()) // standard output has the scenario
		return nil
	}
	return g.out.Show(cmdutil.Document{
		Data: struct {
			Scenario string `json:"scenario"`
			File     string `json:"file"`
			*generate.Report
		}{f.Name, g.to, report},
		Names: []string{f.Name},
		Page:  func(p cmdutil.Page) { p.Printf("%s: scenario %s\n%s", g.to, f.Name, report) },
	})
}

// generateShare is the share of the time that jobs take before they are written.
const generateShare = 0.1

// generateLine returns the progress as one line. written is the share of the file.
func generateLine(name string, p generate.Progress, written float64, elapsed time.Duration) string {
	share := generateShare*p.Share + (1-generateShare)*written
	return term.ProgressLine(share, elapsed, name, cmdutil.Thousands(p.Jobs)+" jobs", elapsed.Round(time.Second).String())
}
