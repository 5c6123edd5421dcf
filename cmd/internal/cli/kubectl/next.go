package kubectl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/compare"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// highestPriority is the highest priority of classes that users define.
const highestPriority = 1_000_000_000

// A queue is the document of `kubectl cede next`: the pods of a node in the order of
// their eviction.
type queue struct {
	Version  int           `json:"version"`
	Node     string        `json:"node"`
	Priority int32         `json:"priority"` // of the pods that need capacity
	Policies []policyQueue `json:"policies"`
}

// A policyQueue is the order under one policy.
type policyQueue struct {
	Policy  string         `json:"policy"`
	Victims []queuedVictim `json:"victims"`
	// Last reports whether no further pod of the node may be evicted.
	Last bool `json:"last"`
}

// A queuedVictim is a pod that would be evicted.
type queuedVictim struct {
	compare.Victim
	Order int `json:"order"` // from 1
}

func newNextCmd(c *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "next NODE",
		Short:       "Show which pods of a node would be evicted next",
		Annotations: cmdutil.ExitCodes("3 the API server cannot be reached", "4 no such node", "7 a policy failed"),
		Long: `Show the order in which pods of a node would be evicted, under each policy, if pods of
the given priority needed the capacity of one pod each. NODE may be a unique prefix.

The victims of a real pod depend on its requests too: cede kubectl what-if shows them.`,
		Example: `  cede kubectl next worker-1
  cede kubectl next worker-1 --priority 1000 --count 3 -p 'protect?minRuntime=10m'`,
		Args: cmdutil.PositionalArgs(1, 1, "a node"),
	}
	live := compare.NewLive(cmd, c.env, basePolicy)
	priority := cmd.Flags().Int32("priority", highestPriority, "priority `N` of the pods that need capacity")
	count := cmd.Flags().Int("count", 5, "show the first `N` pods")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *count < 1 {
			return cmdutil.Usagef("use 1 or more", "--count must be at least 1, not %d", *count)
		}
		if err := live.Resolve(1, basePolicy); err != nil {
			return err
		}
		d, err := c.dump(cmd.Context())
		if err != nil {
			return err
		}
		node, err := findNode(d, args[0])
		if err != nil {
			return err
		}
		q := &queue{Version: 1, Node: node.Metadata.Name, Priority: *priority}
		ends := live.WithCallLog(func() error { return q.fill(cmd.Context(), c, live, withPlaces(d, node), *count) })
		if len(q.Policies) == 0 {
			return ends
		}
		if err := live.Out().Show(q.document()); err != nil {
			return err
		}
		return ends
	}
	return cmd
}

// withPlaces returns a copy of a dump in which the node has one unit of an additional
// resource for each of its pods, and each pod requests one. A pod that requests one
// requires the eviction of one pod, independently of the other requests.
func withPlaces(d *kube.Dump, node *kube.Node) *kube.Dump {
	copied := *d
	copied.Pods = slices.Clone(d.Pods)
	places := 0
	for i, p := range copied.Pods {
		if p.Spec.NodeName != node.Metadata.Name || p.Metadata.DeletionTimestamp != "" || p.IsFinished() {
			continue
		}
		one := *p
		one.RequestProposed()
		copied.Pods[i] = &one
		places++
	}
	full := *node
	allocatable := node.Status.Allocatable
	if len(allocatable) == 0 {
		allocatable = node.Status.Capacity
	}
	full.Status.Allocatable = kube.ResourceList{}
	maps.Copy(full.Status.Allocatable, allocatable)
	full.Status.Allocatable[kube.Proposed] = kube.Quantity(fmt.Sprint(places))
	copied.Nodes = slices.Clone(d.Nodes)
	copied.Nodes[slices.Index(copied.Nodes, node)] = &full
	return &copied
}

// preemptor returns a pod that needs the capacity of one pod of a node.
func (q *queue) preemptor() *kube.Dump {
	p := &kube.Pod{Metadata: kube.Metadata{Name: "next", Namespace: "default"}}
	p.Spec.Priority = &q.Priority
	p.Spec.Tolerations = []kube.Toleration{{Operator: "Exists"}}
	p.Spec.Affinity = kube.OnNode(q.Node)
	p.RequestProposed()
	return &kube.Dump{Pods: []*kube.Pod{p}}
}

// fill determines the order under each policy: the victim of one pod, then the victim of
// one pod in the cluster without the earlier victims. It returns an error that concerns some policies.
func (q *queue) fill(ctx context.Context, c *cluster, live *compare.Live, d *kube.Dump, count int) error {
	start, err := c.scenario(d)
	if err != nil {
		return err
	}
	for at := range live.Policies() {
		one, f := live.Only(at), start
		p := policyQueue{Victims: []queuedVictim{}}
		for len(p.Victims) < count {
			a, err := one.WhatIf(ctx, f, "the next pod", q.preemptor())
			if err != nil {
				return err
			}
			p.Policy = a.Policies[0].Policy
			if err := a.Conclude(); err != nil {
				q.Policies = append(q.Policies, p)
				return err
			}
			victims := a.Policies[0].Victims
			if len(victims) == 0 {
				p.Last = true
				break
			}
			for _, v := range victims {
				p.Victims = append(p.Victims, queuedVictim{v, len(p.Victims) + 1})
			}
			f = without(f, q.Node, victims)
		}
		q.Policies = append(q.Policies, p)
	}
	return nil
}

// without returns a copy of a scenario without the victims and their places.
func without(f *simrun.ScenarioFile, node string, victims []compare.Victim) *simrun.ScenarioFile {
	file := *f.File
	file.Running = slices.DeleteFunc(slices.Clone(file.Running), func(r scenario.Running) bool {
		return slices.ContainsFunc(victims, func(v compare.Victim) bool { return v.ID == r.ID })
	})
	file.Nodes = slices.Clone(file.Nodes)
	for i := range file.Nodes {
		n := &file.Nodes[i]
		if n.ID != node {
			continue
		}
		n.Capacity = maps.Clone(n.Capacity)
		n.Capacity[kube.Proposed] -= int64(len(victims))
	}
	return &simrun.ScenarioFile{File: &file, Path: f.Path, Lines: f.Lines}
}

func (q *queue) document() cmdutil.Document {
	var names []string
	for _, p := range q.Policies {
		for _, v := range p.Victims {
			names = append(names, v.ID)
		}
	}
	return cmdutil.Document{Data: q, Names: names, Page: q.page}
}

// page renders the order as text.
func (q *queue) page(p cmdutil.Page) {
	if !p.NoHeaders {
		p.Printf("If pods of priority %d need the capacity of one pod each on %s\n\n", q.Priority, p.Style.Text(term.Bold, q.Node))
	}
	t := &term.Table{Columns: []term.Column{
		{Title: "POLICY"},
		{Title: "ORDER", Right: true},
		{Title: "POD"},
		{Title: "NAMESPACE"},
		{Title: "PRIORITY", Right: true},
		{Title: "LOST WORK", Right: true},
		{Title: "BUDGET"},
	}}
	for _, one := range q.Policies {
		for i := range one.Victims {
			v := &one.Victims[i]
			budget := strings.Join(v.Budgets, ", ")
			if v.BudgetViolated {
				budget += " violated"
			}
			t.Row(one.Policy, fmt.Sprint(v.Order), v.ID, v.Namespace, fmt.Sprint(v.Priority), time.Duration(v.LostWork).Truncate(time.Second).String(), budget)
		}
		if one.Last {
			t.Row(one.Policy, "-", "no further pod")
		}
	}
	p.Table(t)
}
