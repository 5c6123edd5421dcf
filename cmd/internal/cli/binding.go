package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newBindingCmd(env *Env) *cobra.Command {
	bindings := noun{command: "binding", one: "binding", many: "bindings", origin: "`cede binding apply FILE` makes them", spaced: true}
	return bindings.holder(&cobra.Command{
		Short: "Spread workloads over member clusters",
		Long: `Spread workloads over member clusters.

A binding says how many replicas of a workload are wanted, what each needs, and
which member clusters may take them. ` + "`cede help bindings`" + ` tells more.`,
		Example: "  cede binding apply bindings.yaml\n  cede binding list\n  cede binding status train",
	},
		listCmd(env, bindings, listVerb[*client.BindingStub]{
			short: "List bindings and where they are",
			get:   func(api *client.Client) lister[*client.BindingStub] { return api.Bindings().List },
			order: func(a, b *client.BindingStub) int { return cmp.Compare(b.Priority, a.Priority) },
			name:  func(b *client.BindingStub) string { return b.ID },
			table: page.bindingTable,
		}),
		newBindingApplyCmd(env), newBindingStatusCmd(env, bindings), newBindingDeleteCmd(env, bindings))
}

func (p page) bindingTable(list []*client.BindingStub) *term.Table {
	titles := []string{"BINDING", "NAMESPACE", "PRIORITY>", "STATUS", "REPLICAS>", "READY>", "CLUSTERS"}
	if p.wide {
		titles = append(titles, "PREEMPTION", "CLASS", "WHY")
	}
	t := columns(titles...)
	for _, b := range list {
		cells := []term.Cell{
			plain(b.ID), plain(b.Namespace), plain(fmt.Sprint(b.Priority)), stated(b.Status), plain(fmt.Sprintf("%d/%d", b.Placed, b.Replicas)),
			plain(fmt.Sprint(b.Ready)), plain(spreadOver(b.Clusters)),
		}
		if p.wide {
			cells = append(cells, plain(b.PreemptionPolicy), plain(b.PriorityClass), plain(b.StatusDescription))
		}
		t.Cells(cells...)
	}
	return t
}

// spreadOver lists replicas by cluster: eu ×2, us ×1.
func spreadOver(clusters map[string]int) string {
	var words []string
	for _, id := range slices.Sorted(maps.Keys(clusters)) {
		words = append(words, replicasOn(id, clusters[id]))
	}
	return strings.Join(words, ", ")
}

func newBindingStatusCmd(env *Env, bindings noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status ID", Short: "Describe a binding: where it is, why the rest has no place, whom it displaced and who displaced it",
		Example: "  cede binding status train",
	}
	return bindings.verb(env, cmd, func(ctx context.Context, c *connection, id string) (document, error) {
		b, _, err := c.client.Bindings().Get(ctx, id, c.query())
		if err != nil {
			return document{}, err
		}
		return document{data: b, names: []string{b.ID}, page: func(p page) { p.binding(env, b) }}, nil
	})
}

func (p page) binding(env *Env, b *client.BindingStatus) {
	spec := b.Binding
	p.facts("binding", b.ID, "namespace", b.Namespace, "priority", fmt.Sprint(b.Priority), "class", b.PriorityClass, "preemption", b.PreemptionPolicy,
		"status", described(b.Status, b.StatusDescription), "replicas", fmt.Sprintf("%d of %d placed, %d ready, %s", b.Placed, b.Replicas, b.Ready, spec.ReplicaScheduling),
		"each needs", amounts(spec.Resources), "spread", spreadOf(spec), "clusters", strings.Join(spec.Clusters, ", "), "version", fmt.Sprint(b.Version),
		"warning", strings.Join(b.Warnings, "; "))
	if len(b.Assignments) > 0 {
		p.title("Assigned")
		p.assignmentTable(env, b.Assignments, true)
	}
	p.claims(env, b.Claims)
	p.unbound(b)
	p.evictions(env, b)
}

// spreadOf says on how many clusters, and values of an attribute, a binding has to be;
// "": on any.
func spreadOf(b *client.Binding) string {
	m := model.Binding{MinClusters: b.MinClusters, MaxClusters: b.MaxClusters, SpreadBy: b.SpreadBy, MinGroups: b.MinGroups, MaxGroups: b.MaxGroups}
	return m.SpreadText()
}

// unbound tells why replicas have no place, cluster by cluster.
func (p page) unbound(b *client.BindingStatus) {
	if b.Missing == 0 {
		return
	}
	p.title(fmt.Sprintf("Why %s no place", count(b.Missing, "replica has", "replicas have")))
	t := columns("CLUSTER", "WOULD TAKE>", "BUT")
	for _, c := range b.Unbound {
		t.Row(c.ClusterID, fmt.Sprint(c.Fits), c.Reason)
	}
	p.table(t)
	if b.NoEviction != "" {
		p.printf("Nobody is evicted: %s\n", remedied(b.NoEviction))
	}
}

// evictions lists whom a binding displaced, and who displaced it.
func (p page) evictions(env *Env, b *client.BindingStatus) {
	var did, suffered []displaced
	for _, e := range b.Evictions {
		if e.ByNamespace == b.Namespace && e.ByBindingID == b.ID {
			did = append(did, displaced{e, e.Namespace + "/" + e.BindingID, e.Priority})
		} else {
			suffered = append(suffered, displaced{e, e.ByNamespace + "/" + e.ByBindingID, e.ByPriority})
		}
	}
	p.displaced(env, "Displaced", did)
	p.displaced(env, "Displaced by", suffered)
	if len(b.Evictions) == 0 {
		p.printf("\nNo displacement is on record at %s", b.RecordedBy)
	} else {
		p.printf("\nDisplacements are those on record at %s", b.RecordedBy)
	}
	p.printf(": a server records what it applies, and the last 20 are shown\n")
}

// displaced is an eviction, and the binding on its other side.
type displaced struct {
	*client.BindingEviction
	other    string
	priority int
}

func (p page) displaced(env *Env, title string, list []displaced) {
	if len(list) == 0 {
		return
	}
	p.title(title)
	t := columns("BINDING", "PRIORITY>", "CLUSTER", "REPLICAS>", "AGO>")
	for _, e := range list {
		t.Row(e.other, fmt.Sprint(e.priority), e.ClusterID, fmt.Sprint(e.Replicas), env.ago(e.Time))
	}
	p.table(t)
}

func newBindingApplyCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Register bindings, or other versions of them",
		Long: `Register bindings, or other versions of them. FILE is YAML or JSON: one
binding, a list of them, or a scenario with bindings:

  - id: train
    priority: 10                       # or priorityClass: high
    preemptionPolicy: PreemptLowerPriority
    replicas: 2
    resources: {cpu: 2000}             # of one replica
    clusters: [eu, us]                 # absent: all

` + "`cede help bindings`" + ` tells what else there is.`,
		Example: "  cede binding apply bindings.yaml\n  echo '{id: web, replicas: 2, resources: {cpu: 500}}' | cede binding apply -",
	}
	return applyCmd(env, cmd, applyVerb[*client.Binding, registeredBinding]{
		read: readBindings,
		put: func(ctx context.Context, c *connection, b *client.Binding) (registeredBinding, error) {
			answer, err := c.client.Bindings().Put(ctx, b, nil)
			if err != nil {
				return registeredBinding{}, err
			}
			for _, w := range answer.Warnings {
				env.warn("binding " + b.ID + ": " + w)
			}
			return registeredBinding{b.ID, c.namespaceOf(b.Namespace), answer}, nil
		},
		name: func(r registeredBinding) string { return r.ID },
		table: func(p page, list []registeredBinding) *term.Table {
			t := columns("BINDING", "NAMESPACE", "EVALUATION")
			for _, r := range list {
				t.Row(r.ID, r.Namespace, p.id(r.EvalID))
			}
			return t
		},
	})
}

// registeredBinding is a binding that a server has taken.
type registeredBinding struct {
	ID        string
	Namespace string
	*client.BindingResponse
}

func newBindingDeleteCmd(env *Env, bindings noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Stop a binding, and forget it once nothing of it is left",
		Example: "  cede binding delete train",
	}
	return bindings.verb(env, cmd, func(ctx context.Context, c *connection, id string) (document, error) {
		answer, err := c.client.Bindings().Stop(ctx, id, true, nil)
		if err != nil {
			return document{}, err
		}
		if len(answer.Warnings) > 0 {
			return said(answer, id, "Binding %s stops: %s", id, strings.Join(answer.Warnings, "; ")), nil
		}
		return said(answer, id, "Binding %s is deleted", id), nil
	})
}
