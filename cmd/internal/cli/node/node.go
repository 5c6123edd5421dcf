package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede node` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "node",
		Short:   "List, describe, drain and taint nodes",
		Long:    `List, describe, drain and taint nodes, and change their eligibility.`,
		Example: "  cede node list\n  cede node status n1\n  cede node drain n1",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newNodeListCmd(env), newNodeStatusCmd(env), newNodeRiskCmd(env), newNodeDrainCmd(env), newNodeEligibilityCmd(env), newNodeTaintCmd(env))
	return cmd
}

func newNodeListCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List nodes",
		Example: "  cede node list\n  cede node list -o wide\n  cede node list -t '{{range .}}{{.ID}} {{.Capacity.cpu}}{{\"\\n\"}}{{end}}'",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		list, err := cmdutil.ListAll(ctx, c.QueryOptions(), c.Client.Nodes().List)
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: list, Names: cmdutil.NamesOf(list, func(n *client.NodeStub) string { return n.ID }), Page: func(p cmdutil.Page) {
			titles := []string{"NODE ID", "NAME", "DATACENTER", "CLASS", "STATUS", "TAKES WORK", "CPU>", "MEMORY>"}
			if p.Wide {
				titles = append(titles, "CAPACITY", "RESERVED", "DEVICES", "ADDRESS")
			}
			t := cmdutil.NewTable(titles...)
			for _, n := range list {
				cells := []term.Cell{
					cmdutil.Cell(p.ID(n.ID)), cmdutil.Cell(p.Name(n.Name)), cmdutil.Cell(n.Datacenter), cmdutil.Cell(n.NodeClass), cmdutil.StatusCell(n.Status), cmdutil.Cell(acceptsAllocations(n.Status, n.Drain, n.SchedulingEligibility)),
					cmdutil.Cell(fmt.Sprint(n.Capacity["cpu"])), cmdutil.Cell(fmt.Sprint(n.Capacity["memory"])),
				}
				if p.Wide {
					cells = append(cells, cmdutil.Cell(cmdutil.FormatResources(n.Capacity)), cmdutil.Cell(cmdutil.FormatResources(n.ReservedCapacity)), cmdutil.Cell(nodeDevices(n.Devices)), cmdutil.Cell(n.Address))
				}
				t.Cells(cells...)
			}
			p.List(t, "nodes", "an agent with a node joins by itself; `cede agent --dev` is one")
		}}, nil
	})
}

// acceptsAllocations reports whether a node accepts new allocations, with the reason if it does
// not.
func acceptsAllocations(status string, drain bool, eligibility string) string {
	switch {
	case status == "down":
		return "no: down"
	case drain:
		return "no: draining"
	case eligibility == client.NodeIneligible:
		return "no: ineligible"
	}
	return "yes"
}

func nodeDevices(list []client.NodeDevice) string {
	var words []string
	for _, d := range list {
		words = append(words, fmt.Sprintf("%s=%d", d.ID, d.Count))
	}
	return strings.Join(words, " ")
}

func newNodeStatusCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status ID",
		Short: "Describe a node, its resources and allocations",
		Long: `Describe a node: its status, attributes and taints, which resources are used and free,
and which allocations run on it.`,
		Example: "  cede node status n1\n  cede node status n1 -o wide",
		Args:    cmdutil.PositionalArgs(1, 1, "one node"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		n, err := apiview.FindNode(ctx, c, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		allocs, _, err := c.Client.Nodes().Allocations(ctx, n.ID, &client.QueryOptions{Namespace: "*"})
		if err != nil {
			return cmdutil.Document{}, err
		}
		v := struct {
			*client.Node
			Allocations []*client.Allocation
		}{n, allocs}
		return cmdutil.Document{Data: v, Names: []string{n.ID}, Page: func(p cmdutil.Page) { nodePage(p, env, n, allocs) }}, nil
	})
}

func nodePage(p cmdutil.Page, env *cmdutil.Env, n *client.Node, allocs []*client.Allocation) {
	attributes := ""
	if p.Wide {
		attributes = cmdutil.FormatLabels(n.Attributes)
	}
	p.Properties("id", n.ID, "name", n.Name, "datacenter", n.Datacenter, "class", n.NodeClass, "status", cmdutil.WithReason(n.Status, n.StatusDescription),
		"takes work", acceptsAllocations(n.Status, n.Drain, n.SchedulingEligibility), "address", n.HTTPAddr, "meta", cmdutil.FormatLabels(n.Meta), "taints", taintWords(n.Taints),
		"attributes", attributes, "devices", nodeDevices(n.Devices))
	used := map[string]int64{}
	for _, a := range allocs {
		if a.DesiredStatus != "run" || !apiview.IsLive(a.ClientStatus) {
			continue
		}
		for resource, amount := range a.ResourceUse {
			used[resource] += amount
		}
	}
	p.Title("Resources")
	t := cmdutil.NewTable("RESOURCE", "CAPACITY>", "RESERVED>", "USED>", "FREE>")
	for _, resource := range resourceNames(n.Capacity, used) {
		have, reserved := n.Capacity[resource], n.ReservedCapacity[resource]
		t.Row(resource, fmt.Sprint(have), fmt.Sprint(reserved), fmt.Sprint(used[resource]), fmt.Sprint(have-reserved-used[resource]))
	}
	p.Table(t)
	stubs := make([]*client.AllocationStub, 0, len(allocs))
	for _, a := range allocs {
		if p.Wide || apiview.IsLive(a.ClientStatus) {
			stubs = append(stubs, stubOf(a))
		}
	}
	if len(stubs) == 0 {
		return
	}
	slices.SortStableFunc(stubs, func(a, b *client.AllocationStub) int { return cmp.Compare(b.Priority, a.Priority) })
	p.Title("Allocations")
	apiview.AllocTable(p, env, stubs, false)
}

func resourceNames(maps ...map[string]int64) []string {
	order := map[string]int{"cpu": 1, "memory": 2, "disk": 3, "network": 4}
	var names []string
	for _, m := range maps {
		for k := range m {
			if !slices.Contains(names, k) {
				names = append(names, k)
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(cmp.Or(order[a], 9), cmp.Or(order[b], 9)), strings.Compare(a, b))
	})
	return names
}

// stubOf returns the list form of an allocation.
func stubOf(a *client.Allocation) *client.AllocationStub {
	return &client.AllocationStub{
		ID: a.ID, Name: a.Name, Namespace: a.Namespace, EvalID: a.EvalID, NodeID: a.NodeID, NodeName: a.NodeName, JobID: a.JobID,
		JobVersion: a.JobVersion, TaskGroup: a.TaskGroup, Priority: a.Priority,
		DesiredStatus: a.DesiredStatus, DesiredDescription: a.DesiredDescription, ClientStatus: a.ClientStatus, ClientDescription: a.ClientDescription,
		PreemptedAllocations: a.PreemptedAllocations, PreemptedByAllocation: a.PreemptedByAllocation, PolicyVersion: a.PolicyVersion,
		ResourceUse: a.ResourceUse, CreateTime: a.CreateTime, ModifyTime: a.ModifyTime, CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex,
	}
}
