package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newAllocCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alloc",
		Short: "Look at allocations: where instances run, what they say, who made room",
		Long: `Look at allocations: where instances run, what they say, who made room.

An allocation is one instance of a group on a node. Ids may be shortened to any
prefix that is unique, as tables do.`,
		Example: "  cede alloc list --job web\n  cede alloc status 9d21\n  cede alloc logs 9d21 -f",
	}
	group(cmd)
	cmd.AddCommand(newAllocListCmd(env), newAllocStatusCmd(env), newAllocStopCmd(env), newAllocLogsCmd(env))
	return cmd
}

func newAllocListCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List allocations, the newest first",
		Long: `List allocations, the newest first: those that run or start, with --all the
others as well.`,
		Example: "  cede alloc list\n  cede alloc list --job web --all\n  cede alloc list --node n1 -o name",
		Args:    arguments(0, 0, "no arguments"),
	}
	job := cmd.Flags().String("job", "", "those of this `JOB` alone")
	node := cmd.Flags().String("node", "", "those on this `NODE` alone")
	every := cmd.Flags().Bool("all", false, "those that have ended as well")
	return asking(env, cmd, func(ctx context.Context, c *connection, _ []string) (document, error) {
		list, err := c.allocations(ctx, *job, *node)
		if err != nil {
			return document{}, err
		}
		list = slices.DeleteFunc(list, func(a *client.AllocationStub) bool {
			return !*every && !lives(a.ClientStatus)
		})
		slices.SortStableFunc(list, func(a, b *client.AllocationStub) int {
			return cmp.Or(cmp.Compare(b.CreateIndex, a.CreateIndex), strings.Compare(a.Name, b.Name))
		})
		return document{data: list, names: namesOf(list, func(a *client.AllocationStub) string { return a.ID }), page: func(p page) {
			shown := list
			if len(shown) > maxList && !p.wide {
				shown = shown[:maxList]
			}
			if len(shown) == 0 && !p.bare {
				p.printf("There are no allocations that run; --all lists those that have ended\n")
				return
			}
			p.allocTable(env, shown, *job != "")
			p.more(len(list), len(shown))
		}}, nil
	})
}

func (c *connection) allocations(ctx context.Context, job, node string) ([]*client.AllocationStub, error) {
	api, err := c.dial()
	if err != nil {
		return nil, err
	}
	var list []*client.AllocationStub
	if job == "" {
		list, err = all(ctx, c.query(), api.Allocations().List)
	} else {
		var found *client.Job
		if found, err = c.findJob(ctx, job); err == nil {
			list, _, err = api.Jobs().Allocations(ctx, found.ID, &client.QueryOptions{Namespace: found.Namespace})
		}
	}
	if err != nil || node == "" {
		return list, interruptedBy(ctx, err)
	}
	on, err := c.findNode(ctx, node)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(a *client.AllocationStub) bool { return a.NodeID != on.ID }), nil
}

// findAlloc gets an allocation by its id or a prefix of it.
func (c *connection) findAlloc(ctx context.Context, id string) (*client.Allocation, error) {
	api, err := c.dial()
	if err != nil {
		return nil, err
	}
	a, _, err := api.Allocations().Get(ctx, id, c.query())
	return a, notFound(interruptedBy(ctx, err), "allocation", id, "`cede alloc list --all` lists them")
}

func newAllocStatusCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status ID",
		Short:   "Describe an allocation: where it is, how it does, whom it evicted",
		Example: "  cede alloc status 9d21\n  cede alloc status 9d21 -o json",
		Args:    arguments(1, 1, "one allocation"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		a, err := c.findAlloc(ctx, args[0])
		if err != nil {
			return document{}, err
		}
		return document{data: a, names: []string{a.ID}, page: func(p page) { allocPage(p, env, a) }}, nil
	})
}

func allocPage(p page, env *Env, a *client.Allocation) {
	node := a.NodeID
	if a.NodeName != "" && a.NodeName != a.NodeID {
		node = a.NodeName + " (" + p.id(a.NodeID) + ")"
	}
	var ports, devices []string
	for _, port := range a.Ports {
		ports = append(ports, fmt.Sprint(port))
	}
	for _, d := range a.Devices {
		devices = append(devices, fmt.Sprintf("%s=%d", d.ID, d.Count))
	}
	score := ""
	if p.wide {
		score = fmt.Sprintf("%.4f", a.Score)
	}
	p.facts("id", a.ID, "name", a.Name, "job", a.JobID, "namespace", a.Namespace, "version", fmt.Sprint(a.JobVersion),
		"group", a.TaskGroup, "priority", fmt.Sprint(a.Priority), "node", node, "evaluation", a.EvalID,
		"desired", described(a.DesiredStatus, a.DesiredDescription), "status", described(a.ClientStatus, a.ClientDescription),
		"resources", amounts(a.ResourceUse), "ports", strings.Join(ports, ", "), "devices", strings.Join(devices, ", "), "score", score,
		"created", env.when(a.CreateTime), "started", env.when(a.StartTime), "ended", env.when(a.EndTime),
		"evicted", p.ids(a.PreemptedAllocations), "evicted for", p.id(a.PreemptedByAllocation), "policy", a.PolicyVersion)
}

// described is a state and why.
func described(status, why string) string {
	if why == "" {
		return status
	}
	return status + ": " + why
}

func newAllocStopCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "stop ID",
		Short:   "Stop an allocation; its job gets another",
		Example: "  cede alloc stop 9d21",
		Args:    arguments(1, 1, "one allocation"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		a, err := c.findAlloc(ctx, args[0])
		if err != nil {
			return document{}, err
		}
		answer, err := c.client.Allocations().Stop(ctx, a.ID, &client.WriteOptions{Namespace: a.Namespace})
		if err != nil {
			return document{}, err
		}
		v := struct {
			AllocID string
			*client.AllocStopResponse
		}{a.ID, answer}
		return document{data: v, names: []string{a.ID}, page: func(p page) {
			p.printf("Allocation %s (%s) stops; evaluation %s looks for a place for another\n", p.id(a.ID), a.Name, p.id(answer.EvalID))
		}}, nil
	})
}

// lives is whether an allocation has not ended, as far as anybody knows.
func lives(status string) bool {
	return status == "running" || status == "pending" || status == "unknown"
}
