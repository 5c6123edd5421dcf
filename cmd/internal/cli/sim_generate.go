package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// simGenerate is one `cede sim generate`.
type simGenerate struct {
	env    *Env
	out    *output
	to     string
	seed   uint64
	seeded bool
}

func newSimGenerateCmd(env *Env) *cobra.Command {
	g := &simGenerate{env: env}
	cmd := &cobra.Command{
		Use:   "generate SPEC -w OUT",
		Short: "Make a scenario of a small description",
		Long: `Make a scenario of a small description: a cluster, classes of work with their
sizes and arrivals, how much load each priority offers, and what fails when. The
same description and seed give the same bytes. SPEC is a YAML or JSON file, or
one of

` + presetList(),
		Example: "  cede sim generate contended -w contended.yaml",
		Args:    arguments(1, 1, "a file or the name of a preset"),
	}
	for _, p := range generate.Presets() {
		cmd.ValidArgs = append(cmd.ValidArgs, p.Name+"\t"+p.Description)
	}
	g.out = outputFlags(cmd, env)
	writeFlag(cmd, &g.to)
	cmd.Flags().Uint64Var(&g.seed, "seed", 0, "replace the description's seed by `N`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		g.seeded = cmd.Flags().Changed("seed")
		if err := g.out.resolve(); err != nil {
			return err
		}
		if err := env.needWrite(g.to); err != nil {
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
	_ = t.Write(&b, term.Style{}) // to memory
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
	if err := g.env.writeScenario(g.to, f); err != nil {
		return err
	}
	if g.to == stdin {
		_, _ = io.WriteString(g.env.Stderr, report.String()) // standard output is the scenario's
		return nil
	}
	return g.out.show(document{
		data: struct {
			Scenario string `json:"scenario"`
			File     string `json:"file"`
			*generate.Report
		}{f.Name, g.to, report},
		names: []string{f.Name},
		page:  func(p page) { p.printf("%s: scenario %s\n%s", g.to, f.Name, report) },
	})
}

// mostSpec is more than the description of any cluster has.
const mostSpec = 2 << 20

// spec reads a description: a preset, a file, or standard input.
func (g *simGenerate) spec(name string) (*generate.Spec, error) {
	for _, p := range generate.Presets() {
		if p.Name == name {
			return generate.Open(name)
		}
	}
	r, err := g.env.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("check the path, or use a preset: "+presetNames(), "%s: there is no such file, and no such preset", name)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(r, mostSpec))
	if err != nil {
		return nil, unreadable(name, err)
	}
	if name == stdin {
		name = standardInput
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
	return oneOf(names)
}

// notGenerated is a description of which no scenario can be made.
func notGenerated(name string, err error) error {
	e := &Error{Exit: ExitUsage, Code: codeInvalid, Message: fmt.Sprintf("%s: %v", name, err)}
	if invalid, ok := errors.AsType[*scenario.Error](err); ok {
		e = invalidFile(invalid)
	}
	e.Hint = "presets show what a description looks like: " + presetNames() + "; `go doc ./core/sim/generate` lists every field"
	return e
}
