package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newClusterCmd(env *Env) *cobra.Command {
	clusters := noun{
		command: "cluster", one: "cluster", many: "member clusters",
		origin: "an agent joins its cluster by itself; `cede cluster apply FILE` makes one without",
	}
	return clusters.holder(&cobra.Command{
		Short: "Look at member clusters, over which bindings are spread",
		Long: `Look at member clusters, over which bindings are spread.

A cluster joins by itself where an agent speaks for it (` + "`cede agent`" + ` with
member.enabled). One without an agent is made here: what is assigned to it
starts and ends by the clock. ` + "`cede help bindings`" + ` tells more.`,
		Example: "  cede cluster list\n  cede cluster apply clusters.yaml\n  cede cluster status eu",
	},
		listCmd(env, clusters, listVerb[*client.Cluster]{
			short: "List member clusters",
			get:   func(api *client.Client) lister[*client.Cluster] { return api.Clusters().List },
			name:  clusterName, table: clusterTable,
		}),
		newClusterApplyCmd(env), newClusterStatusCmd(env, clusters), newClusterDeleteCmd(env, clusters))
}

func clusterName(c *client.Cluster) string { return c.ID }

func clusterTable(_ page, list []*client.Cluster) *term.Table {
	t := columns("CLUSTER", "STATUS", "AGENT", "CAPACITY", "FREE", "ASSIGNMENTS>", "STOPPING>", "CLAIMS>", "ATTRIBUTES")
	for _, c := range list {
		t.Cells(plain(c.ID), stated(c.Status), plain(yes(c.Agent)), plain(amounts(c.Capacity)), plain(amounts(c.Free)),
			plain(fmt.Sprint(c.Assignments)), plain(fmt.Sprint(c.Stopping)), plain(fmt.Sprint(len(c.Claims))), plain(texts(c.Attributes)))
	}
	return t
}

func newClusterStatusCmd(env *Env, clusters noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status ID", Short: "Describe a member cluster: what it has, what is assigned there, what is claimed",
		Example: "  cede cluster status eu",
	}
	return clusters.verb(env, cmd, func(ctx context.Context, c *connection, id string) (document, error) {
		m, _, err := c.client.Clusters().Get(ctx, id, nil)
		if err != nil {
			return document{}, err
		}
		assigned, _, err := c.client.Clusters().Assignments(ctx, m.ID, nil)
		if err != nil {
			return document{}, err
		}
		v := struct {
			*client.Cluster
			Assigned []*client.Assignment
		}{m, assigned}
		return document{data: v, names: []string{m.ID}, page: func(p page) { p.cluster(env, m, assigned) }}, nil
	})
}

func (p page) cluster(env *Env, c *client.Cluster, assigned []*client.Assignment) {
	p.facts("cluster", c.ID, "status", c.Status, "agent", yes(c.Agent), "capacity", amounts(c.Capacity), "for bindings", amounts(c.Reported),
		"free", amounts(c.Free), "attributes", texts(c.Attributes))
	if len(assigned) > 0 {
		p.title("Assigned")
		p.assignmentTable(env, assigned, false)
	}
	p.claims(env, c.Claims)
}

// assignmentTable lists assignments; those of one binding need not name it.
func (p page) assignmentTable(env *Env, list []*client.Assignment, ofBinding bool) {
	first := "BINDING"
	if ofBinding {
		first = "CLUSTER"
	}
	t := columns(first, "REPLICAS>", "DESIRED", "STATUS", "READY>", "AGE>", "NOTE")
	for _, a := range list {
		name := a.BindingID
		if ofBinding {
			name = a.ClusterID
		}
		t.Cells(plain(name), plain(fmt.Sprint(a.Replicas)), stated(a.DesiredStatus), stated(a.ClientStatus),
			plain(fmt.Sprint(a.Ready)), plain(env.ago(a.CreateTime)), plain(assignmentNote(a)))
	}
	p.table(t)
}

// assignmentNote is what is worth saying of an assignment.
func assignmentNote(a *client.Assignment) string {
	switch {
	case a.PreemptedByBinding != "":
		return "evicted for binding " + a.PreemptedByBinding
	case a.DesiredStatus != "run" && a.DesiredDescription != "":
		return a.DesiredDescription
	}
	return a.ClientDescription
}

// claims lists room that is kept.
func (p page) claims(env *Env, list []*client.ClusterClaim) {
	if len(list) == 0 {
		return
	}
	p.title("Claimed")
	t := columns("CLUSTER", "FOR BINDING", "PRIORITY>", "RESOURCES", "EXPIRES IN>")
	for _, c := range list {
		binding, expires := c.Namespace+"/"+c.BindingID, "-"
		if c.Pool != "" {
			binding += " of pool " + c.Pool
		}
		if c.Expiry > 0 {
			expires = age(time.Unix(0, c.Expiry).Sub(env.Clock.Now()))
		}
		t.Row(c.ClusterID, binding, fmt.Sprint(c.Priority), amounts(c.Resources), expires)
	}
	p.table(t)
}

func newClusterApplyCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Make or change member clusters that have no agent",
		Long: `Make or change member clusters that have no agent. FILE is YAML or JSON: one
cluster, a list of them, or a scenario with clusters:

  - {id: eu, capacity: {cpu: 8000, memory: 16Gi}, attributes: {region: eu}}`,
		Example: "  cede cluster apply clusters.yaml\n  echo '{id: eu, capacity: {cpu: 8000}}' | cede cluster apply -",
	}
	return applyCmd(env, cmd, applyVerb[*client.Cluster, *client.Cluster]{
		read: readClusters,
		put: func(ctx context.Context, c *connection, m *client.Cluster) (*client.Cluster, error) {
			_, err := c.client.Clusters().Put(ctx, m)
			return m, err
		},
		name: clusterName,
		table: func(_ page, list []*client.Cluster) *term.Table {
			t := columns("CLUSTER", "CAPACITY", "ATTRIBUTES")
			for _, m := range list {
				t.Row(m.ID, amounts(m.Capacity), texts(m.Attributes))
			}
			return t
		},
	})
}

func newClusterDeleteCmd(env *Env, clusters noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Delete a member cluster on which nothing is assigned",
		Example: "  cede cluster delete eu\n  cede cluster delete eu --force",
	}
	force := cmd.Flags().Bool("force", false, "delete it whatever is assigned there: that is placed elsewhere")
	return clusters.verb(env, cmd, func(ctx context.Context, c *connection, id string) (document, error) {
		answer, err := c.client.Clusters().Delete(ctx, id, *force)
		if err != nil {
			return document{}, err
		}
		return said(struct {
			ID    string
			Index uint64
		}{id, answer.Index}, id, "Cluster %s is deleted", id), nil
	})
}
