package binding

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewClusterCommand returns `cede cluster` with its subcommands.
func NewClusterCommand(env *cmdutil.Env) *cobra.Command {
	clusters := cmdutil.Resource{
		Command: "cluster", Singular: "cluster", Plural: "member clusters",
		EmptyHint: "agents register their clusters; `cede cluster apply FILE` creates a cluster without an agent",
	}
	return clusters.Group(&cobra.Command{
		Short: "List, describe and edit member clusters",
		Long: `List, describe and edit member clusters, to which bindings are assigned.

A cluster with an agent (cede agent with member.enabled) registers itself. A cluster
without an agent is created here; replicas that are assigned to it start and end by
the clock. cede help bindings describes federation.`,
		Example: "  cede cluster list\n  cede cluster apply clusters.yaml\n  cede cluster status eu",
	},
		cmdutil.NewListCmd(env, clusters, cmdutil.ListSpec[*client.Cluster]{
			Short: "List member clusters",
			Get:   func(api *client.Client) cmdutil.Lister[*client.Cluster] { return api.Clusters().List },
			Name:  clusterName, Table: clusterTable,
		}),
		newClusterApplyCmd(env), newClusterStatusCmd(env, clusters), newClusterDeleteCmd(env, clusters))
}

func clusterName(c *client.Cluster) string { return c.ID }

func clusterTable(_ cmdutil.Page, list []*client.Cluster) *term.Table {
	t := cmdutil.NewTable("CLUSTER", "STATUS", "AGENT", "CAPACITY", "FREE", "ASSIGNMENTS>", "STOPPING>", "CLAIMS>", "ATTRIBUTES")
	for _, c := range list {
		t.Cells(cmdutil.Cell(c.ID), cmdutil.StatusCell(c.Status), cmdutil.Cell(cmdutil.YesNo(c.Agent)), cmdutil.Cell(cmdutil.FormatResources(c.Capacity)), cmdutil.Cell(cmdutil.FormatResources(c.Free)),
			cmdutil.Cell(fmt.Sprint(c.Assignments)), cmdutil.Cell(fmt.Sprint(c.Stopping)), cmdutil.Cell(fmt.Sprint(len(c.Claims))), cmdutil.Cell(cmdutil.FormatLabels(c.Attributes)))
	}
	return t
}

func newClusterStatusCmd(env *cmdutil.Env, clusters cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status ID", Short: "Describe a member cluster and its assignments",
		Long: `Describe a member cluster: its capacity, the replicas that are assigned to it, and the
capacity that is claimed for other bindings.`,
		Example: "  cede cluster status eu",
	}
	return clusters.ItemCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, id string) (cmdutil.Document, error) {
		m, _, err := c.Client.Clusters().Get(ctx, id, nil)
		if err != nil {
			return cmdutil.Document{}, err
		}
		assigned, _, err := c.Client.Clusters().Assignments(ctx, m.ID, nil)
		if err != nil {
			return cmdutil.Document{}, err
		}
		v := struct {
			*client.Cluster
			Assigned []*client.Assignment
		}{m, assigned}
		return cmdutil.Document{Data: v, Names: []string{m.ID}, Page: func(p cmdutil.Page) { clusterPage(p, env, m, assigned) }}, nil
	})
}

func clusterPage(p cmdutil.Page, env *cmdutil.Env, c *client.Cluster, assigned []*client.Assignment) {
	p.Properties("cluster", c.ID, "status", c.Status, "agent", cmdutil.YesNo(c.Agent), "capacity", cmdutil.FormatResources(c.Capacity), "for bindings", cmdutil.FormatResources(c.Reported),
		"free", cmdutil.FormatResources(c.Free), "attributes", cmdutil.FormatLabels(c.Attributes))
	if len(assigned) > 0 {
		p.Title("Assigned")
		assignmentTable(p, env, assigned, false)
	}
	claimTable(p, env, c.Claims)
}

// assignmentTable lists assignments. If they all belong to one binding, its column is
// omitted.
func assignmentTable(p cmdutil.Page, env *cmdutil.Env, list []*client.Assignment, ofBinding bool) {
	first := "BINDING"
	if ofBinding {
		first = "CLUSTER"
	}
	t := cmdutil.NewTable(first, "REPLICAS>", "DESIRED", "STATUS", "READY>", "AGE>", "NOTE")
	for _, a := range list {
		name := a.BindingID
		if ofBinding {
			name = a.ClusterID
		}
		t.Cells(cmdutil.Cell(name), cmdutil.Cell(fmt.Sprint(a.Replicas)), cmdutil.StatusCell(a.DesiredStatus), cmdutil.StatusCell(a.ClientStatus),
			cmdutil.Cell(fmt.Sprint(a.Ready)), cmdutil.Cell(env.Age(a.CreateTime)), cmdutil.Cell(assignmentNote(a)))
	}
	p.Table(t)
}

// assignmentNote returns the note of an assignment in tables.
func assignmentNote(a *client.Assignment) string {
	switch {
	case a.PreemptedByBinding != "":
		return "evicted by binding " + a.PreemptedByBinding
	case a.DesiredStatus != "run" && a.DesiredDescription != "":
		return a.DesiredDescription
	}
	return a.ClientDescription
}

// claimTable lists claims.
func claimTable(p cmdutil.Page, env *cmdutil.Env, list []*client.ClusterClaim) {
	if len(list) == 0 {
		return
	}
	p.Title("Claimed")
	t := cmdutil.NewTable("CLUSTER", "FOR BINDING", "PRIORITY>", "RESOURCES", "EXPIRES IN>")
	for _, c := range list {
		binding, expires := c.Namespace+"/"+c.BindingID, "-"
		if c.Pool != "" {
			binding += " of pool " + c.Pool
		}
		if c.Expiry > 0 {
			expires = cmdutil.FormatAge(time.Unix(0, c.Expiry).Sub(env.Clock.Now()))
		}
		t.Row(c.ClusterID, binding, fmt.Sprint(c.Priority), cmdutil.FormatResources(c.Resources), expires)
	}
	p.Table(t)
}

func newClusterApplyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Create or update member clusters without an agent",
		Long: `Create or update member clusters that have no agent. FILE is YAML or JSON: one cluster,
a list of clusters, or a scenario with clusters:

  - {id: eu, capacity: {cpu: 8000, memory: 16Gi}, attributes: {region: eu}}

Clusters that FILE does not contain are not changed.`,
		Example: "  cede cluster apply clusters.yaml\n  echo '{id: eu, capacity: {cpu: 8000}}' | cede cluster apply -",
	}
	return cmdutil.NewApplyCmd(env, cmd, cmdutil.ApplySpec[*client.Cluster, *client.Cluster]{
		Read: readClusters,
		Put: func(ctx context.Context, c *cmdutil.Connection, m *client.Cluster) (*client.Cluster, error) {
			_, err := c.Client.Clusters().Put(ctx, m)
			return m, err
		},
		Name: clusterName,
		Table: func(_ cmdutil.Page, list []*client.Cluster) *term.Table {
			t := cmdutil.NewTable("CLUSTER", "CAPACITY", "ATTRIBUTES")
			for _, m := range list {
				t.Row(m.ID, cmdutil.FormatResources(m.Capacity), cmdutil.FormatLabels(m.Attributes))
			}
			return t
		},
	})
}

func newClusterDeleteCmd(env *cmdutil.Env, clusters cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Delete a member cluster without assignments",
		Long: `Delete a member cluster. A cluster with assignments is refused, unless --force is given:
then its replicas are assigned to other clusters.`,
		Example: "  cede cluster delete eu\n  cede cluster delete eu --force",
	}
	force := cmd.Flags().Bool("force", false, "delete the cluster even if it has assignments")
	return clusters.ItemCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, id string) (cmdutil.Document, error) {
		answer, err := c.Client.Clusters().Delete(ctx, id, *force)
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.MessageDocument(struct {
			ID    string
			Index uint64
		}{id, answer.Index}, id, "Cluster %s is deleted", id), nil
	})
}
