package job

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobHistoryCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "List the versions of a job and their changes",
		Long: `List the recent versions of a job, and which fields each version changed. How many
versions are retained is fixed; older ones are not available.`,
		Example: "  cede job history web\n  cede job history web -o json",
		Args:    cmdutil.PositionalArgs(1, 1, "one job"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		job, err := apiview.FindJob(ctx, c, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		versions, _, err := c.Client.Jobs().Versions(ctx, job.ID, &client.QueryOptions{Namespace: job.Namespace})
		if err != nil {
			return cmdutil.Document{}, err
		}
		names := cmdutil.NamesOf(versions, func(j *client.Job) string { return fmt.Sprint(j.Version) })
		return cmdutil.Document{Data: versions, Names: names, Page: func(p cmdutil.Page) { historyPage(p, env, versions) }}, nil
	})
}

// historyPage lists versions, the newest first, each with its changes from the
// previous one.
func historyPage(p cmdutil.Page, env *cmdutil.Env, versions []*client.Job) {
	t := cmdutil.NewTable("VERSION>", "SUBMITTED", "AGE>", "STOPPED", "CHANGES>")
	changes := make([][]change, len(versions))
	for i, j := range versions {
		number := ""
		if i+1 < len(versions) {
			changes[i] = jobChanges(versions[i+1], j)
			number = fmt.Sprint(len(changes[i]))
		}
		t.Row(fmt.Sprint(j.Version), cmdutil.FormatTime(j.SubmitTime), env.Age(j.SubmitTime), cmdutil.YesNo(j.Stop), number)
	}
	p.Table(t)
	for i, list := range changes {
		if len(list) == 0 {
			continue
		}
		p.Title(fmt.Sprintf("Version %d", versions[i].Version))
		for n, c := range list {
			if n == cmdutil.MaxRows && !p.Wide {
				p.Omitted(len(list), n)
				break
			}
			p.Printf("  %s\n", c)
		}
	}
}
