package binding

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede binding` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	bindings := cmdutil.Resource{Command: "binding", Singular: "binding", Plural: "bindings", EmptyHint: "`cede binding apply FILE` creates them", Namespaced: true}
	return bindings.Group(&cobra.Command{
		Short: "Assign workloads to member clusters",
		Long: `Assign workloads to member clusters.

A binding states how many replicas a workload requires, the resources of each replica,
and which member clusters are eligible. cede help bindings describes the fields.`,
		Example: "  cede binding apply bindings.yaml\n  cede binding list\n  cede binding status train",
	},
		cmdutil.NewListCmd(env, bindings, cmdutil.ListSpec[*client.BindingStub]{
			Short: "List bindings and their assignments",
			Get:   func(api *client.Client) cmdutil.Lister[*client.BindingStub] { return api.Bindings().List },
			Order: func(a, b *client.BindingStub) int { return cmp.Compare(b.Priority, a.Priority) },
			Name:  func(b *client.BindingStub) string { return b.ID },
			Table: bindingTable,
		}),
		newBindingApplyCmd(env), newBindingStatusCmd(env, bindings), newBindingDeleteCmd(env, bindings))
}

func bindingTable(p cmdutil.Page, list []*client.BindingStub) *term.Table {
	titles := []string{"BINDING", "NAMESPACE", "PRIORITY>", "STATUS", "REPLICAS>", "READY>", "CLUSTERS"}
	if p.Wide {
		titles = append(titles, "PREEMPTION", "CLASS", "WHY")
	}
	t := cmdutil.NewTable(titles...)
	for _, b := range list {
		cells := []term.Cell{
			cmdutil.Cell(b.ID), cmdutil.Cell(b.Namespace), cmdutil.Cell(fmt.Sprint(b.Priority)), cmdutil.StatusCell(b.Status), cmdutil.Cell(fmt.Sprintf("%d/%d", b.Placed, b.Replicas)),
			cmdutil.Cell(fmt.Sprint(b.Ready)), cmdutil.Cell(spreadOver(b.Clusters)),
		}
		if p.Wide {
			cells = append(cells, cmdutil.Cell(b.PreemptionPolicy), cmdutil.Cell(b.PriorityClass), cmdutil.Cell(b.StatusDescription))
		}
		t.Cells(cells...)
	}
	return t
}

// spreadOver formats replicas by cluster: eu ×2, us ×1.
func spreadOver(clusters map[string]int) string {
	var words []string
	for _, id := range slices.Sorted(maps.Keys(clusters)) {
		words = append(words, cmdutil.ReplicasOn(id, clusters[id]))
	}
	return strings.Join(words, ", ")
}

func newBindingStatusCmd(env *cmdutil.Env, bindings cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status ID", Short: "Describe a binding, its assignments and evictions",
		Long: `Describe a binding: its assignments, why unassigned replicas are pending, which bindings
it evicted, and which bindings evicted it.`,
		Example: "  cede binding status train",
	}
	return bindings.ItemCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, id string) (cmdutil.Document, error) {
		b, _, err := c.Client.Bindings().Get(ctx, id, c.QueryOptions())
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: b, Names: []string{b.ID}, Page: func(p cmdutil.Page) { bindingPage(p, env, b) }}, nil
	})
}

func bindingPage(p cmdutil.Page, env *cmdutil.Env, b *client.BindingStatus) {
	spec := b.Binding
	p.Properties("binding", b.ID, "namespace", b.Namespace, "priority", fmt.Sprint(b.Priority), "class", b.PriorityClass, "preemption", b.PreemptionPolicy,
		"status", cmdutil.WithReason(b.Status, b.StatusDescription), "replicas", fmt.Sprintf("%d of %d placed, %d ready, %s", b.Placed, b.Replicas, b.Ready, spec.ReplicaScheduling),
		"each needs", cmdutil.FormatResources(spec.Resources), "spread", spreadOf(spec), "clusters", strings.Join(spec.Clusters, ", "), "version", fmt.Sprint(b.Version),
		"warning", strings.Join(b.Warnings, "; "))
	if len(b.Assignments) > 0 {
		p.Title("Assigned")
		assignmentTable(p, env, b.Assignments, true)
	}
	claimTable(p, env, b.Claims)
	unboundTable(p, b)
	evictionTable(p, env, b)
}

// spreadOf describes the clusters and attribute values over which a binding must be
// spread. It returns "" if it may use any clusters.
func spreadOf(b *client.Binding) string {
	m := model.Binding{MinClusters: b.MinClusters, MaxClusters: b.MaxClusters, SpreadBy: b.SpreadBy, MinGroups: b.MinGroups, MaxGroups: b.MaxGroups}
	return m.SpreadText()
}

// unboundTable lists, by cluster, why replicas are not bound.
func unboundTable(p cmdutil.Page, b *client.BindingStatus) {
	if b.Missing == 0 {
		return
	}
	p.Title(fmt.Sprintf("Why %s pending", cmdutil.Count(b.Missing, "replica is", "replicas are")))
	t := cmdutil.NewTable("CLUSTER", "WOULD TAKE>", "BUT")
	for _, c := range b.Unbound {
		t.Row(c.ClusterID, fmt.Sprint(c.Fits), c.Reason)
	}
	p.Table(t)
	if b.NoEviction != "" {
		p.Printf("No eviction: %s\n", apiview.WithRemedy(b.NoEviction))
	}
}

// evictionTable lists the bindings that a binding evicted, and those that evicted it.
func evictionTable(p cmdutil.Page, env *cmdutil.Env, b *client.BindingStatus) {
	var did, suffered []displaced
	for _, e := range b.Evictions {
		if e.ByNamespace == b.Namespace && e.ByBindingID == b.ID {
			did = append(did, displaced{e, e.Namespace + "/" + e.BindingID, e.Priority})
		} else {
			suffered = append(suffered, displaced{e, e.ByNamespace + "/" + e.ByBindingID, e.ByPriority})
		}
	}
	displacedTable(p, env, "Displaced", did)
	displacedTable(p, env, "Displaced by", suffered)
	if len(b.Evictions) == 0 {
		p.Printf("\nNo evictions are recorded at %s", b.RecordedBy)
	} else {
		p.Printf("\nEvictions are those recorded at %s", b.RecordedBy)
	}
	p.Printf(": a server records the entries that it applies, and the last 20 are shown\n")
}

// displaced is an eviction with the binding on its other side.
type displaced struct {
	*client.BindingEviction
	other    string
	priority int
}

func displacedTable(p cmdutil.Page, env *cmdutil.Env, title string, list []displaced) {
	if len(list) == 0 {
		return
	}
	p.Title(title)
	t := cmdutil.NewTable("BINDING", "PRIORITY>", "CLUSTER", "REPLICAS>", "AGO>")
	for _, e := range list {
		t.Row(e.other, fmt.Sprint(e.priority), e.ClusterID, fmt.Sprint(e.Replicas), env.Age(e.Time))
	}
	p.Table(t)
}

func newBindingApplyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Create or update bindings from a file",
		Long: `Create or update bindings. FILE is YAML or JSON: one binding, a list of bindings, or a
scenario with bindings:

  - id: train
    priority: 10                       # or priorityClass: high
    preemptionPolicy: PreemptLowerPriority
    replicas: 2
    resources: {cpu: 2000}             # of one replica
    clusters: [eu, us]                 # default: all

cede help bindings describes the other fields. Bindings that FILE does not contain are
not changed.`,
		Example: "  cede binding apply bindings.yaml\n  echo '{id: web, replicas: 2, resources: {cpu: 500}}' | cede binding apply -",
	}
	return cmdutil.NewApplyCmd(env, cmd, cmdutil.ApplySpec[*client.Binding, registeredBinding]{
		Read: readBindings,
		Put: func(ctx context.Context, c *cmdutil.Connection, b *client.Binding) (registeredBinding, error) {
			answer, err := c.Client.Bindings().Put(ctx, b, nil)
			if err != nil {
				return registeredBinding{}, err
			}
			for _, w := range answer.Warnings {
				env.Warn("binding " + b.ID + ": " + w)
			}
			return registeredBinding{b.ID, c.ResolveNamespace(b.Namespace), answer}, nil
		},
		Done: apiview.WarnPaused,
		Name: func(r registeredBinding) string { return r.ID },
		Table: func(p cmdutil.Page, list []registeredBinding) *term.Table {
			t := cmdutil.NewTable("BINDING", "NAMESPACE", "EVALUATION")
			for _, r := range list {
				t.Row(r.ID, r.Namespace, p.ID(r.EvalID))
			}
			return t
		},
	})
}

// registeredBinding is the result of registering a binding.
type registeredBinding struct {
	ID        string
	Namespace string
	*client.BindingResponse
}

func newBindingDeleteCmd(env *cmdutil.Env, bindings cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Stop a binding and delete it",
		Long: `Stop a binding. It is deleted when its last replica has stopped; the command does not
wait for that.`,
		Example: "  cede binding delete train",
	}
	return bindings.ItemCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, id string) (cmdutil.Document, error) {
		answer, err := c.Client.Bindings().Stop(ctx, id, true, nil)
		if err != nil {
			return cmdutil.Document{}, err
		}
		apiview.WarnPaused(ctx, c)
		if len(answer.Warnings) > 0 {
			return cmdutil.MessageDocument(answer, id, "Binding %s stops: %s", id, strings.Join(answer.Warnings, "; ")), nil
		}
		return cmdutil.MessageDocument(answer, id, "Binding %s is deleted", id), nil
	})
}
