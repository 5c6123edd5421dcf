package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/cmd/internal/term"
)

// NewConfigCommand returns `cede config` with its subcommands.
func NewConfigCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and print the configuration of cede agent",
		Long: `Check and print the configuration that cede agent would run with. A running process
is not contacted.`,
		Example: `  cede config validate -c /etc/cede/cede.yaml
  cede config show -c /etc/cede/cede.yaml`,
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newConfigValidateCmd(env), newConfigShowCmd(env))
	return cmd
}

func newConfigValidateCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [FILE...]",
		Short: "Report every problem of a configuration",
		Long: `Report every problem of a configuration: unknown keys, with suggestions; invalid
values; keys that contradict each other; and files of certificates and keys that are
missing or do not match. Settings that are valid but open to other machines are
reported as warnings. FILE is a YAML file or a folder of them, as for -c.

Nothing is started, and no port is opened.`,
		Example: "  cede config validate /etc/cede/cede.yaml",
		Args:    cmdutil.PositionalArgs(0, -1, "files"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	from := SourceFlags(cmd, env)
	from.devFlag(cmd)
	cmd.Flags().BoolVar(&from.Kubernetes, "kubernetes", false, "check or print the configuration of cede kubernetes")
	var skipFiles bool
	cmd.Flags().BoolVar(&skipFiles, "no-files", false, "do not read the files of certificates, keys and secrets, for a configuration of another machine")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		from.Files = append(from.Files, args...)
		c, err := from.Load(!skipFiles)
		if err != nil {
			return err
		}
		for _, w := range c.Warnings() {
			env.Warn(w.String())
		}
		return out.Show(cmdutil.Document{
			Data:  struct{ Valid, Server, Node, Member bool }{true, c.Server.Enabled, c.Client.Enabled, c.Member.Enabled},
			Names: from.Files,
			Page:  func(p cmdutil.Page) { p.Printf("The configuration is valid: %s.\n", role(c)) },
		})
	}
	return cmd
}

// role describes the roles of a process with this configuration.
func role(c *config.Loaded) string {
	var parts []string
	for _, p := range []struct {
		on   bool
		name string
	}{{c.Server.Enabled, "a server"}, {c.Client.Enabled, "a node"}, {c.Member.Enabled, "a member cluster's agent"}, {c.Controller, "the extender of a Kubernetes cluster"}} {
		if p.on {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, " and ")
}

func newConfigShowCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print every configuration value and its source",
		Long: `Print every key of the configuration with its value and the source of the value: the
default, a line of a file, an environment variable, or the command line.

Secrets are masked.`,
		Example: "  cede config show -c /etc/cede/cede.yaml\n  CEDE_LOG__LEVEL=debug cede config show --dev",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	from := SourceFlags(cmd, env)
	from.devFlag(cmd)
	cmd.Flags().BoolVar(&from.Kubernetes, "kubernetes", false, "check or print the configuration of cede kubernetes")
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		c, err := from.Load(false)
		if err != nil {
			return err
		}
		values := c.Values()
		names := make([]string, len(values))
		for i, v := range values {
			names[i] = v.Key
		}
		return out.Show(cmdutil.Document{Data: values, Names: names, Page: func(p cmdutil.Page) {
			t := &term.Table{Columns: []term.Column{{Title: "KEY"}, {Title: "VALUE"}, {Title: "SOURCE"}}}
			for _, v := range values {
				t.Row(v.Key, valueText(v.Value), v.Source)
			}
			p.Table(t)
		}})
	}
	return cmd
}

// valueText formats a value for a table.
func valueText(v any) string {
	text := strings.TrimPrefix(fmt.Sprint(v), "map[]")
	if text == "" || text == "[]" {
		return "-"
	}
	return text
}

// invalidConfig returns the error of an invalid configuration.
func invalidConfig(err error) error {
	var e *config.Error
	if !errors.As(err, &e) {
		return err
	}
	hint := "`cede config show --dev` lists every key"
	if !slices.ContainsFunc(e.Problems, func(p config.Problem) bool { return p.Key != "" }) {
		hint = "check the path and that the file is valid YAML"
	}
	noun := "problems"
	if len(e.Problems) == 1 {
		noun = "problem"
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Details: e.Problems,
		Message: fmt.Sprintf("the configuration has %d %s", len(e.Problems), noun),
		Hint:    hint,
		Lines:   strings.Split(e.Error(), "\n"), Err: err,
	}
}
