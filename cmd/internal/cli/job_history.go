package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobHistoryCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "history ID",
		Short:   "List the last versions of a job, and what each changed",
		Example: "  cede job history web\n  cede job history web -o json",
		Args:    arguments(1, 1, "one job"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		job, err := c.findJob(ctx, args[0])
		if err != nil {
			return document{}, err
		}
		versions, _, err := c.client.Jobs().Versions(ctx, job.ID, &client.QueryOptions{Namespace: job.Namespace})
		if err != nil {
			return document{}, err
		}
		names := namesOf(versions, func(j *client.Job) string { return fmt.Sprint(j.Version) })
		return document{data: versions, names: names, page: func(p page) { historyPage(p, env, versions) }}, nil
	})
}

// historyPage lists versions, the newest first, each with what it changed of the
// one before.
func historyPage(p page, env *Env, versions []*client.Job) {
	t := columns("VERSION>", "SUBMITTED", "AGE>", "STOPPED", "CHANGES>")
	changes := make([][]change, len(versions))
	for i, j := range versions {
		number := ""
		if i+1 < len(versions) {
			changes[i] = jobChanges(versions[i+1], j)
			number = fmt.Sprint(len(changes[i]))
		}
		t.Row(fmt.Sprint(j.Version), moment(j.SubmitTime), env.ago(j.SubmitTime), yes(j.Stop), number)
	}
	p.table(t)
	for i, list := range changes {
		if len(list) == 0 {
			continue
		}
		p.title(fmt.Sprintf("Version %d", versions[i].Version))
		for n, c := range list {
			if n == maxRows && !p.wide {
				p.more(len(list), n)
				break
			}
			p.printf("  %s\n", c)
		}
	}
}
