package apiview

import (
	"context"
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// FindAlloc returns an allocation by its ID or a prefix of it.
func FindAlloc(ctx context.Context, c *cmdutil.Connection, id string) (*client.Allocation, error) {
	api, err := c.Dial()
	if err != nil {
		return nil, err
	}
	a, _, err := api.Allocations().Get(ctx, id, c.QueryOptions())
	return a, cmdutil.ReplaceNotFound(cmdutil.InterruptError(ctx, err), "allocation", id, "`cede alloc list --all` lists them")
}

// FindEval returns an evaluation by its ID or a prefix of it.
func FindEval(ctx context.Context, c *cmdutil.Connection, id string) (*client.Evaluation, error) {
	api, err := c.Dial()
	if err != nil {
		return nil, err
	}
	e, _, err := api.Evaluations().Get(ctx, id, c.QueryOptions())
	return e, cmdutil.ReplaceNotFound(cmdutil.InterruptError(ctx, err), "evaluation", id, "`cede eval list` lists them")
}

// FindJob returns the job with an ID or a unique prefix of it.
func FindJob(ctx context.Context, c *cmdutil.Connection, id string) (*client.Job, error) {
	api, err := c.Dial()
	if err != nil {
		return nil, err
	}
	job, _, err := api.Jobs().Get(ctx, id, c.QueryOptions())
	if err == nil || !client.IsNotFound(err) {
		return job, cmdutil.InterruptError(ctx, err)
	}
	q := c.QueryOptions()
	q.Prefix, q.PerPage = id, 10
	near, _, listErr := api.Jobs().List(ctx, q)
	if listErr != nil {
		return nil, cmdutil.InterruptError(ctx, listErr)
	}
	switch len(near) {
	case 0:
		return nil, &cmdutil.Error{Exit: cmdutil.ExitNotFound, Code: client.CodeNotFound, Message: fmt.Sprintf("no job %q", id), Hint: "`cede job status` lists jobs" + cmdutil.NamespaceHint}
	case 1:
		q := c.QueryOptions()
		q.Namespace = near[0].Namespace
		job, _, err = api.Jobs().Get(ctx, near[0].ID, q)
		return job, cmdutil.InterruptError(ctx, err)
	}
	var ids []string
	for _, j := range near {
		ids = append(ids, j.ID)
	}
	return nil, cmdutil.Ambiguous("job", id, ids)
}

// FindNode returns a node by its ID or a prefix of it, or by its name.
func FindNode(ctx context.Context, c *cmdutil.Connection, id string) (*client.Node, error) {
	api, err := c.Dial()
	if err != nil {
		return nil, err
	}
	n, _, err := api.Nodes().Get(ctx, id, nil)
	if !client.IsNotFound(err) {
		return n, cmdutil.InterruptError(ctx, err)
	}
	list, listErr := cmdutil.ListAll(ctx, nil, api.Nodes().List)
	if listErr != nil {
		return nil, listErr
	}
	list = slices.DeleteFunc(list, func(n *client.NodeStub) bool { return n.Name != id })
	switch len(list) {
	case 0:
		return nil, cmdutil.ReplaceNotFound(err, "node", id, "`cede node list` lists them")
	case 1:
		n, _, err = api.Nodes().Get(ctx, list[0].ID, nil)
		return n, cmdutil.InterruptError(ctx, err)
	}
	return nil, cmdutil.Ambiguous("node", id, cmdutil.NamesOf(list, func(n *client.NodeStub) string { return n.ID }))
}
