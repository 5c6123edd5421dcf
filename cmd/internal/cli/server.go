package cli

import (
	"cmp"
	"context"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newServerCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "server", Short: "Look at the pool of servers, join one, leave it", Example: "  cede server members"}
	group(cmd)
	cmd.AddCommand(newServerMembersCmd(env), newServerJoinCmd(env), newServerLeaveCmd(env))
	return cmd
}

func newServerMembersCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "members", Short: "List the servers of the pool",
		Long: `List the servers of the pool: the name that each has in its configuration, its id,
by which other commands know it, and where it gossips.`,
		Example: "  cede server members\n  cede server members -o wide",
		Args:    arguments(0, 0, "no arguments"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, _ []string) (document, error) {
		m, err := c.client.Status().Members(ctx)
		if err != nil {
			return document{}, err
		}
		leader, err := c.client.Status().Leader(ctx)
		if err != nil && !client.HasCode(err, client.CodeNoLeader) {
			return document{}, err
		}
		v := members{m, leader}
		return document{data: v, names: namesOf(m.Members, func(m *client.Member) string { return m.Name }), page: v.page}, nil
	})
}

// members is the pool.
type members struct {
	*client.Members
	Leader string // address
}

func (v members) page(p page) {
	titles := []string{"NAME", "ID", "ADDRESS", "STATUS"}
	if p.wide {
		titles = append(titles, "TAGS")
	}
	t := columns(titles...)
	leader, alone := cmp.Or(v.Leader, "none"), false
	for _, m := range v.Members.Members {
		if raft := m.Tags["raft"]; raft != "" && raft == v.Leader {
			leader = cmp.Or(m.Tags["name"], m.Name) + " (" + v.Leader + ")"
		}
		address := m.Addr
		switch {
		case m.Port > 0:
			address = net.JoinHostPort(m.Addr, strconv.Itoa(int(m.Port)))
		case m.Addr == m.Name: // without gossip it knows itself by its id
			alone, address = true, ""
			if leader == m.Name {
				leader = cmp.Or(m.Tags["name"], m.Name)
			}
		}
		cells := []string{m.Tags["name"], m.Name, address, m.Status}
		if p.wide {
			cells = append(cells, texts(m.Tags))
		}
		t.Row(cells...)
	}
	p.table(t)
	if !p.bare {
		p.printf("Leader: %s\n", leader)
		if alone {
			p.printf("It is alone and gossips nowhere: listen.gossip in its configuration makes a pool.\n")
		}
	}
}
