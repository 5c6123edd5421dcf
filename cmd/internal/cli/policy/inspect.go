package policy

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/plugins/wasm"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

func newPolicyInspectCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect [P]",
		Short: "Describe a policy: hooks, settings and limits",
		Long: `Describe policy P (default: the policy in the working folder): its kind, the version that
it has with its configuration, its hooks and the columns that they read, its settings,
the limits of its calls, and the imports and exports of a WebAssembly module.

No hook is called. An executable is not started without --run: only its manifest and
its checksum are read. A composition with an executable requires --run.`,
		Example: `  cede policy inspect thrifty
  cede policy inspect ./thrifty-process --run
  cede policy inspect 'least-waste?bands=20' -t '{{.version}}'`,
		Args: cmdutil.PositionalArgs(0, 1, "one policy"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	options := policyflags.AddFlags(cmd, env)
	var run bool
	cmd.Flags().BoolVar(&run, "run", false, "start an executable to read its hooks and settings")
	cmd.ValidArgsFunction = policyflags.CompleteNames()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if len(args) == 0 {
			args = []string{"."}
		}
		ctx := cmd.Context()
		if !run {
			ctx = policies.WithoutProcesses(ctx)
			if i, err := policies.InspectFile(args[0]); err == nil && i != nil {
				return out.Show(cmdutil.Document{Data: i, Names: []string{i.Name}, Page: func(p cmdutil.Page) { executable{i}.page(p) }})
			}
		}
		opened, err := options.Open(ctx, args)
		if errors.Is(err, policies.ErrNotStarted) {
			e := *cmdutil.AsError(err) // it may list problems of other parts
			e.Exit, e.Code, e.Hint = cmdutil.ExitUsage, cmdutil.CodeUsage, "--run starts it, which executes its code with your rights"
			return &e
		}
		if err != nil {
			return err
		}
		defer hold(opened[0])()
		i, err := policies.Inspect(cmd.Context(), opened[0])
		if err != nil {
			return policyflags.WrapError(args[0], err)
		}
		return out.Show(cmdutil.Document{Data: i, Names: []string{i.Name}, Page: func(p cmdutil.Page) { inspection{i}.page(p) }})
	}
	return cmd
}

// executable prints the description of an executable that was not started.
type executable struct{ *policies.Inspection }

func (e executable) page(p cmdutil.Page) {
	hooks := ""
	if len(e.Hooks) > 0 {
		hooks = strings.Join(e.Hooks, ", ") + " (declared)"
	}
	p.Properties("policy", e.Name, "description", e.Description, "kind", e.Kind, "module", e.Module, "digest", e.Digest,
		"signature", e.Signature, "hooks", hooks, "not started", "--run starts it, which executes its code with your rights, and reads its hooks and settings")
}

// inspection prints an Inspection as text.
type inspection struct{ *policies.Inspection }

func (i inspection) page(p cmdutil.Page) {
	t := &term.Table{NoHeaders: true, Columns: make([]term.Column, 2)}
	row := func(name, value string) {
		if value != "" {
			t.Row(name, value)
		}
	}
	row("policy", i.Name)
	row("description", i.Description)
	row("kind", i.Kind)
	row("module", i.Module)
	row("digest", i.Digest)
	row("version", i.Version)
	row("configuration", string(i.Config))
	row("grants", strings.Join(i.Grants, ", "))
	row("signature", i.Signature)
	row("ABI", i.ABI)
	row("hooks", cmdutil.JoinOrNone(i.Hooks))
	row("priority delta", strconv.Itoa(int(i.Delta)))
	row("columns", cmdutil.JoinOrNone(i.Columns))
	row("flags", strings.Join(i.Flags, ", "))
	if l := i.Limits; l != nil {
		row("limits", limitsOf(l))
	}
	if a := i.Wasm; a != nil {
		row("memory", memoryOf(a))
		row("imports", functions(a.Imports, p.Wide))
		row("exports", functions(a.Exports, p.Wide))
	}
	_ = t.Write(p.W, p.Style) // p.W stores the error
	if len(i.Parts) > 0 {
		p.Title("Parts")
		t := cmdutil.NewTable("PART", "KIND", "USED FOR", "CONFIGURATION", "DIGEST")
		for _, part := range i.Parts {
			t.Row(part.Name, part.Kind, strings.Join(part.Use, ", "), string(part.Config), part.Digest)
		}
		p.Table(t)
	}
	if list := i.SettingList(); len(list) > 0 {
		p.Title("Settings")
		p.Table(settingTable(list))
	}
}

func limitsOf(l *policies.Limits) string {
	var list []string
	if l.Fuel > 0 {
		list = append(list, cmdutil.Thousands(int(l.Fuel))+" fuel and "+cmdutil.Thousands(int(l.FuelPerRow))+" a row")
	}
	if l.Memory > 0 {
		list = append(list, cmdutil.FormatBytes(l.Memory)+" memory")
	}
	if l.Time != "" {
		list = append(list, l.Time)
	}
	return strings.Join(list, ", ")
}

func memoryOf(a *wasm.ModuleInfo) string {
	if a.MemoryMax == 0 {
		return "from " + cmdutil.FormatBytes(a.MemoryMin)
	}
	return cmdutil.FormatBytes(a.MemoryMin) + " to " + cmdutil.FormatBytes(a.MemoryMax)
}

// functions lists functions. If the line is long enough, it includes their types.
func functions(list []wasm.Function, wide bool) string {
	var words []string
	for _, f := range list {
		word := f.Name
		if f.Module != "" {
			word = f.Module + "." + word
		}
		if wide {
			word += " " + f.Type
		}
		words = append(words, word)
	}
	return cmdutil.JoinOrNone(words)
}

func settingTable(list []sdk.Setting) *term.Table {
	t := &term.Table{Columns: []term.Column{{Title: "SETTING"}, {Title: "KIND"}, {Title: "DEFAULT"}, {Title: "ALLOWED"}, {Title: "TUNE TRIES"}, {Title: "WHAT"}}}
	for i := range list {
		s := &list[i]
		preset := s.Default
		if s.Required {
			preset = "required"
		}
		t.Row(s.Name, s.Kind.String(), preset, allowed(s), tried(s), s.Doc)
	}
	return t
}

// allowed describes the valid values of a setting.
func allowed(s *sdk.Setting) string { return values(s, s.OneOf, s.Limits) }

// tried describes the values of a setting that `cede policy tune` tries.
func tried(s *sdk.Setting) string { return values(s, s.Choices, s.Range) }

func values(s *sdk.Setting, list []string, l *sdk.Limits) string {
	switch {
	case len(list) > 0:
		return strings.Join(list, ", ")
	case l == nil:
		return ""
	}
	number := func(x float64) string {
		if s.Kind == sdk.Duration {
			return scenario.Duration(x * float64(time.Second)).String()
		}
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	if l.Max == math.MaxFloat64 {
		return "from " + number(l.Min)
	}
	return number(l.Min) + " to " + number(l.Max)
}
