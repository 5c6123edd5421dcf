package cli

import (
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
)

func newVersionCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which cede this is",
		Args:  arguments(0, 0, "no arguments"),
	}
	out := outputFlags(cmd, env)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		b := env.Build
		return out.show(document{
			data:  b,
			names: []string{b.Version},
			page: func(p page) {
				t := &term.Table{Columns: []term.Column{{Title: "VERSION"}, {Title: "COMMIT"}, {Title: "DATE"}, {Title: "GO"}, {Title: "PLATFORM"}}}
				t.Row(b.Version, b.Commit, b.Date, b.Go, b.Platform)
				p.table(t)
			},
		})
	}
	return cmd
}
