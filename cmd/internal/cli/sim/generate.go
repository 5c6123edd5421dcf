package sim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/core/sim/scenario"
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
		if err := g.out.Resolve(); err != nil {
			return err
		}
		if err := requireWriteFlag(env, g.to); err != nil {
			return err
		}
		return g.run(args[0])
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

func (g *simGenerate) run(name string) error {
	spec, err := g.spec(name)
	if err != nil {
		return err
	}
	if g.seeded {
		spec.Seed = g.seed
	}
	f, report, err := generate.Generate(spec)
	if err != nil {
		return notGenerated(name, err)
	}
	if err := simrun.WriteScenario(g.env, g.to, f); err != nil {
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

// mostSpec limits the size of a description, in bytes.
const mostSpec = 2 << 20

// spec reads a description: a preset, a file, or standard input.
func (g *simGenerate) spec(name string) (*generate.Spec, error) {
	for _, p := range generate.Presets() {
		if p.Name == name {
			return generate.Open(name)
		}
	}
	r, err := g.env.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cmdutil.Usagef("check the path, or use a preset: "+presetNames(), "no file or preset %q", name)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // read-only
	data, err := io.ReadAll(io.LimitReader(r, mostSpec))
	if err != nil {
		return nil, cmdutil.ReadError(name, err)
	}
	if name == cmdutil.Stdin {
		name = cmdutil.StandardInput
	}
	spec, err := generate.Parse(name, data)
	if err != nil {
		return nil, notGenerated(name, err)
	}
	return spec, nil
}

func presetNames() string {
	var names []string
	for _, p := range generate.Presets() {
		names = append(names, p.Name)
	}
	return cmdutil.JoinOr(names)
}

// notGenerated returns the error for a description that no scenario can be generated
// from.
func notGenerated(name string, err error) error {
	e := &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: fmt.Sprintf("%s: %v", name, err)}
	if invalid, ok := errors.AsType[*scenario.Error](err); ok {
		e = cmdutil.InvalidScenario(invalid)
	}
	e.Hint = "presets are examples of descriptions: " + presetNames() + "; `go doc ./core/sim/generate` lists every field"
	return e
}
