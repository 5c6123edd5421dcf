package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Run jobs: write one, see what it would do, run it, follow it, stop it",
		Long: `Run jobs: write one, see what it would do, run it, follow it, stop it.

A job file is HCL in Nomad's dialect, YAML or JSON; cede help jobs describes it.
job plan shows whom a job would evict before anybody is, and gives a token with
which job run does exactly that.`,
		Example: `  cede job init web.hcl
  cede job plan web.hcl
  cede job run web.hcl
  cede job status web`,
	}
	group(cmd)
	cmd.AddCommand(
		newJobInitCmd(env), newJobValidateCmd(env), newJobPlanCmd(env), newJobRunCmd(env),
		newJobStatusCmd(env), newJobStopCmd(env), newJobHistoryCmd(env),
	)
	return cmd
}

// findJob finds a job by its id or a prefix of it that is unique.
func (c *connection) findJob(ctx context.Context, id string) (*client.Job, error) {
	api, err := c.dial()
	if err != nil {
		return nil, err
	}
	job, _, err := api.Jobs().Get(ctx, id, c.query())
	if err == nil || !client.IsNotFound(err) {
		return job, interruptedBy(ctx, err)
	}
	q := c.query()
	q.Prefix, q.PerPage = id, 10
	near, _, listErr := api.Jobs().List(ctx, q)
	if listErr != nil {
		return nil, interruptedBy(ctx, listErr)
	}
	switch len(near) {
	case 0:
		return nil, &Error{Exit: ExitNotFound, Code: client.CodeNotFound, Message: fmt.Sprintf("there is no job %q", id), Hint: "`cede job status` lists jobs" + elsewhere}
	case 1:
		q := c.query()
		q.Namespace = near[0].Namespace
		job, _, err = api.Jobs().Get(ctx, near[0].ID, q)
		return job, interruptedBy(ctx, err)
	}
	var ids []string
	for _, j := range near {
		ids = append(ids, j.ID)
	}
	return nil, ambiguous("job", id, ids)
}

// ambiguous is a prefix that several ids begin with.
func ambiguous(what, id string, ids []string) error {
	return &Error{
		Exit: ExitUsage, Code: codeUsage, Message: fmt.Sprintf("%q may be any of several %ss: %s", id, what, strings.Join(ids, ", ")),
		Hint: "write more of the id",
	}
}
