package alloc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede alloc` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alloc",
		Short: "List, describe, explain and stop allocations",
		Long: `List, describe and stop allocations, explain evictions, and print logs.

An allocation is one instance of a task group on a node. An ID can be shortened to any
unique prefix; tables show such prefixes.`,
		Example: "  cede alloc list --job web\n  cede alloc status 9d21\n  cede alloc logs 9d21 -f",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newAllocListCmd(env), newAllocStatusCmd(env), newAllocWhyCmd(env), newAllocStopCmd(env), newAllocLogsCmd(env))
	return cmd
}

func newAllocListCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List allocations, newest first",
		Long: `List allocations, newest first. Only allocations that run or start are listed; --all
adds those that have ended.`,
		Example: "  cede alloc list\n  cede alloc list --job web --all\n  cede alloc list --node n1 -o name",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	job := cmd.Flags().String("job", "", "only those of `JOB`")
	node := cmd.Flags().String("node", "", "only those on `NODE`")
	every := cmd.Flags().Bool("all", false, "include those that have ended")
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		list, err := listAllocations(ctx, c, *job, *node)
		if err != nil {
			return cmdutil.Document{}, err
		}
		list = slices.DeleteFunc(list, func(a *client.AllocationStub) bool {
			return !*every && !apiview.IsLive(a.ClientStatus)
		})
		slices.SortStableFunc(list, func(a, b *client.AllocationStub) int {
			return cmp.Or(cmp.Compare(b.CreateIndex, a.CreateIndex), strings.Compare(a.Name, b.Name))
		})
		return cmdutil.Document{Data: list, Names: cmdutil.NamesOf(list, func(a *client.AllocationStub) string { return a.ID }), Page: func(p cmdutil.Page) {
			shown := list
			if len(shown) > cmdutil.MaxList && !p.Wide {
				shown = shown[:cmdutil.MaxList]
			}
			if len(shown) == 0 && !p.NoHeaders {
				p.Printf("No running allocations; --all lists those that have ended\n")
				return
			}
			apiview.AllocTable(p, env, shown, *job != "")
			p.Omitted(len(list), len(shown))
		}}, nil
	})
}

func listAllocations(ctx context.Context, c *cmdutil.Connection, job, node string) ([]*client.AllocationStub, error) {
	api, err := c.Dial()
	if err != nil {
		return nil, err
	}
	var list []*client.AllocationStub
	if job == "" {
		list, err = cmdutil.ListAll(ctx, c.QueryOptions(), api.Allocations().List)
	} else {
		var found *client.Job
		if found, err = apiview.FindJob(ctx, c, job); err == nil {
			list, _, err = api.Jobs().Allocations(ctx, found.ID, &client.QueryOptions{Namespace: found.Namespace})
		}
	}
	if err != nil || node == "" {
		return list, cmdutil.InterruptError(ctx, err)
	}
	on, err := apiview.FindNode(ctx, c, node)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(a *client.AllocationStub) bool { return a.NodeID != on.ID }), nil
}

func newAllocStatusCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status ID",
		Short: "Describe an allocation and what it evicted",
		Long: `Describe an allocation: its node, its desired and actual status, its resources, which
allocations it evicted, and which allocation evicted it.`,
		Example: "  cede alloc status 9d21\n  cede alloc status 9d21 -o json",
		Args:    cmdutil.PositionalArgs(1, 1, "one allocation"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		a, err := apiview.FindAlloc(ctx, c, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: a, Names: []string{a.ID}, Page: func(p cmdutil.Page) { allocPage(p, env, a) }}, nil
	})
}

func allocPage(p cmdutil.Page, env *cmdutil.Env, a *client.Allocation) {
	node := a.NodeID
	if a.NodeName != "" && a.NodeName != a.NodeID {
		node = a.NodeName + " (" + p.ID(a.NodeID) + ")"
	}
	var ports, devices []string
	for _, port := range a.Ports {
		ports = append(ports, fmt.Sprint(port))
	}
	for _, d := range a.Devices {
		devices = append(devices, fmt.Sprintf("%s=%d", d.ID, d.Count))
	}
	score := ""
	if p.Wide {
		score = fmt.Sprintf("%.4f", a.Score)
	}
	p.Properties("id", a.ID, "name", a.Name, "job", a.JobID, "namespace", a.Namespace, "version", fmt.Sprint(a.JobVersion),
		"group", a.TaskGroup, "priority", fmt.Sprint(a.Priority), "node", node, "evaluation", a.EvalID,
		"desired", cmdutil.WithReason(a.DesiredStatus, a.DesiredDescription), "status", cmdutil.WithReason(a.ClientStatus, a.ClientDescription),
		"resources", cmdutil.FormatResources(a.ResourceUse), "ports", strings.Join(ports, ", "), "devices", strings.Join(devices, ", "), "score", score,
		"created", env.TimeAndAge(a.CreateTime), "started", env.TimeAndAge(a.StartTime), "stopping since", stoppingSince(env, a), "ended", env.TimeAndAge(a.EndTime),
		"evicted", p.IDs(a.PreemptedAllocations), "evicted by", p.ID(a.PreemptedByAllocation), "policy", a.PolicyVersion,
		"moved from", p.ID(a.PreviousAllocation), "moved to", p.ID(a.NextAllocation))
}

// stoppingSince returns when an allocation was stopped or evicted, and until when its
// tasks may run; "" if it was not, or has ended.
func stoppingSince(env *cmdutil.Env, a *client.Allocation) string {
	if a.StopTime == 0 || a.EndTime != 0 {
		return ""
	}
	text := env.TimeAndAge(a.StopTime)
	if a.KillDeadline > 0 {
		text += "; killed by " + time.Unix(0, a.KillDeadline).UTC().Format(time.RFC3339)
	}
	return text
}

func newAllocStopCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop an allocation and reschedule its instance",
		Long: `Stop an allocation. The scheduler places a replacement, because the job still requires
the instance; cede job stop stops a job.

The command returns when the stop is recorded, not when the tasks have ended.`,
		Example: "  cede alloc stop 9d21",
		Args:    cmdutil.PositionalArgs(1, 1, "one allocation"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		a, err := apiview.FindAlloc(ctx, c, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		answer, err := c.Client.Allocations().Stop(ctx, a.ID, &client.WriteOptions{Namespace: a.Namespace})
		if err != nil {
			return cmdutil.Document{}, err
		}
		apiview.WarnPaused(ctx, c)
		v := struct {
			AllocID string
			*client.AllocStopResponse
		}{a.ID, answer}
		return cmdutil.Document{Data: v, Names: []string{a.ID}, Page: func(p cmdutil.Page) {
			p.Printf("Allocation %s (%s) is stopping; evaluation %s places a replacement\n", p.ID(a.ID), a.Name, p.ID(answer.EvalID))
		}}, nil
	})
}
