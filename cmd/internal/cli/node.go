package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newNodeCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "node",
		Short:   "Look at nodes, drain them, keep new work away",
		Example: "  cede node list\n  cede node status n1\n  cede node drain n1",
	}
	group(cmd)
	cmd.AddCommand(newNodeListCmd(env), newNodeStatusCmd(env), newNodeDrainCmd(env), newNodeEligibilityCmd(env), newNodeTaintCmd(env))
	return cmd
}

func newNodeListCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List nodes",
		Example: "  cede node list\n  cede node list -o wide\n  cede node list -t '{{range .}}{{.ID}} {{.Capacity.cpu}}{{\"\\n\"}}{{end}}'",
		Args:    arguments(0, 0, "no arguments"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, _ []string) (document, error) {
		list, err := all(ctx, c.query(), c.client.Nodes().List)
		if err != nil {
			return document{}, err
		}
		return document{data: list, names: namesOf(list, func(n *client.NodeStub) string { return n.ID }), page: func(p page) {
			titles := []string{"NODE ID", "NAME", "DATACENTER", "CLASS", "STATUS", "TAKES WORK", "CPU>", "MEMORY>"}
			if p.wide {
				titles = append(titles, "CAPACITY", "RESERVED", "DEVICES", "ADDRESS")
			}
			t := columns(titles...)
			for _, n := range list {
				cells := []term.Cell{
					plain(p.id(n.ID)), plain(n.Name), plain(n.Datacenter), plain(n.NodeClass), stated(n.Status), plain(takesWork(n.Status, n.Drain, n.SchedulingEligibility)),
					plain(fmt.Sprint(n.Capacity["cpu"])), plain(fmt.Sprint(n.Capacity["memory"])),
				}
				if p.wide {
					cells = append(cells, plain(amounts(n.Capacity)), plain(amounts(n.ReservedCapacity)), plain(nodeDevices(n.Devices)), plain(n.Address))
				}
				t.Cells(cells...)
			}
			p.list(t, "nodes", "an agent with a node joins by itself; `cede agent --dev` is one")
		}}, nil
	})
}

// takesWork is whether new work is placed on a node, and why not.
func takesWork(status string, drain bool, eligibility string) string {
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

// findNode gets a node by its id or a prefix of it, or by its name.
func (c *connection) findNode(ctx context.Context, id string) (*client.Node, error) {
	api, err := c.dial()
	if err != nil {
		return nil, err
	}
	n, _, err := api.Nodes().Get(ctx, id, nil)
	if !client.IsNotFound(err) {
		return n, interruptedBy(ctx, err)
	}
	list, listErr := all(ctx, nil, api.Nodes().List)
	if listErr != nil {
		return nil, listErr
	}
	list = slices.DeleteFunc(list, func(n *client.NodeStub) bool { return n.Name != id })
	switch len(list) {
	case 0:
		return nil, notFound(err, "node", id, "`cede node list` lists them")
	case 1:
		n, _, err = api.Nodes().Get(ctx, list[0].ID, nil)
		return n, interruptedBy(ctx, err)
	}
	return nil, ambiguous("node", id, namesOf(list, func(n *client.NodeStub) string { return n.ID }))
}

func newNodeStatusCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status ID",
		Short:   "Describe a node: what it has, what is in use, what runs there",
		Example: "  cede node status n1\n  cede node status n1 -o wide",
		Args:    arguments(1, 1, "one node"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		n, err := c.findNode(ctx, args[0])
		if err != nil {
			return document{}, err
		}
		allocs, _, err := c.client.Nodes().Allocations(ctx, n.ID, &client.QueryOptions{Namespace: "*"})
		if err != nil {
			return document{}, err
		}
		v := struct {
			*client.Node
			Allocations []*client.Allocation
		}{n, allocs}
		return document{data: v, names: []string{n.ID}, page: func(p page) { nodePage(p, env, n, allocs) }}, nil
	})
}

func nodePage(p page, env *Env, n *client.Node, allocs []*client.Allocation) {
	attributes := ""
	if p.wide {
		attributes = texts(n.Attributes)
	}
	p.facts("id", n.ID, "name", n.Name, "datacenter", n.Datacenter, "class", n.NodeClass, "status", described(n.Status, n.StatusDescription),
		"takes work", takesWork(n.Status, n.Drain, n.SchedulingEligibility), "address", n.HTTPAddr, "meta", texts(n.Meta), "taints", taintWords(n.Taints),
		"attributes", attributes, "devices", nodeDevices(n.Devices))
	used := map[string]int64{}
	for _, a := range allocs {
		if a.DesiredStatus != "run" || !lives(a.ClientStatus) {
			continue
		}
		for resource, amount := range a.ResourceUse {
			used[resource] += amount
		}
	}
	p.title("Resources")
	t := columns("RESOURCE", "CAPACITY>", "RESERVED>", "USED>", "FREE>")
	for _, resource := range resourceNames(n.Capacity, used) {
		have, reserved := n.Capacity[resource], n.ReservedCapacity[resource]
		t.Row(resource, fmt.Sprint(have), fmt.Sprint(reserved), fmt.Sprint(used[resource]), fmt.Sprint(have-reserved-used[resource]))
	}
	p.table(t)
	stubs := make([]*client.AllocationStub, 0, len(allocs))
	for _, a := range allocs {
		if p.wide || lives(a.ClientStatus) {
			stubs = append(stubs, stubOf(a))
		}
	}
	if len(stubs) == 0 {
		return
	}
	slices.SortStableFunc(stubs, func(a, b *client.AllocationStub) int { return cmp.Compare(b.Priority, a.Priority) })
	p.title("Allocations")
	p.allocTable(env, stubs, false)
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

// stubOf is what lists show of an allocation.
func stubOf(a *client.Allocation) *client.AllocationStub {
	return &client.AllocationStub{
		ID: a.ID, Name: a.Name, Namespace: a.Namespace, EvalID: a.EvalID, NodeID: a.NodeID, NodeName: a.NodeName, JobID: a.JobID,
		JobVersion: a.JobVersion, TaskGroup: a.TaskGroup, Priority: a.Priority,
		DesiredStatus: a.DesiredStatus, DesiredDescription: a.DesiredDescription, ClientStatus: a.ClientStatus, ClientDescription: a.ClientDescription,
		PreemptedAllocations: a.PreemptedAllocations, PreemptedByAllocation: a.PreemptedByAllocation, PolicyVersion: a.PolicyVersion,
		ResourceUse: a.ResourceUse, CreateTime: a.CreateTime, ModifyTime: a.ModifyTime, CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex,
	}
}
