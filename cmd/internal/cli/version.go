package cli

import (
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
)

func newVersionCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  cede version
  cede version -o json`,
		Long: `Print the version, the commit and its date, and the Go version and platform of the
build. No server is contacted.`,
		Args: cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		b := env.Build
		return out.Show(cmdutil.Document{
			Data:  b,
			Names: []string{b.Version},
			Page: func(p cmdutil.Page) {
				t := &term.Table{Columns: []term.Column{{Title: "VERSION"}, {Title: "COMMIT"}, {Title: "DATE"}, {Title: "GO"}, {Title: "PLATFORM"}}}
				t.Row(b.Version, b.Commit, b.Date, b.Go, b.Platform)
				p.Table(t)
			},
		})
	}
	return cmd
}
