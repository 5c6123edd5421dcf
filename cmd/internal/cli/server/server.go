package server

import (
	"cmp"
	"context"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede server` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "server", Short: "List servers, join a pool, leave it",
		Long: `List the servers of a pool, join a server to a pool, and remove it from the pool.`, Example: "  cede server members",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newServerMembersCmd(env), newServerJoinCmd(env), newServerLeaveCmd(env))
	return cmd
}

func newServerMembersCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "members", Short: "List the servers of the pool",
		Long: `List the servers of the pool: the name in their configuration, the ID by which other
commands address them, and the address of their gossip.`,
		Example: "  cede server members\n  cede server members -o wide",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		m, err := c.Client.Status().Members(ctx)
		if err != nil {
			return cmdutil.Document{}, err
		}
		leader, err := c.Client.Status().Leader(ctx)
		if err != nil && !client.HasCode(err, client.CodeNoLeader) {
			return cmdutil.Document{}, err
		}
		v := members{m, leader}
		return cmdutil.Document{Data: v, Names: cmdutil.NamesOf(m.Members, func(m *client.Member) string { return m.Name }), Page: v.page}, nil
	})
}

// members is the list of the pool's servers.
type members struct {
	*client.Members
	Leader string // its address
}

func (v members) page(p cmdutil.Page) {
	titles := []string{"NAME", "ID", "ADDRESS", "STATUS"}
	if p.Wide {
		titles = append(titles, "TAGS")
	}
	t := cmdutil.NewTable(titles...)
	leader, alone := cmp.Or(v.Leader, "none"), false
	for _, m := range v.Members.Members {
		if raft := m.Tags["raft"]; raft != "" && raft == v.Leader {
			leader = cmp.Or(m.Tags["name"], m.Name) + " (" + v.Leader + ")"
		}
		address := m.Addr
		switch {
		case m.Port > 0:
			address = net.JoinHostPort(m.Addr, strconv.Itoa(int(m.Port)))
		case m.Addr == m.Name: // without gossip, a server's address is its ID
			alone, address = true, ""
			if leader == m.Name {
				leader = cmp.Or(m.Tags["name"], m.Name)
			}
		}
		cells := []string{m.Tags["name"], m.Name, address, m.Status}
		if p.Wide {
			cells = append(cells, cmdutil.FormatLabels(m.Tags))
		}
		t.Row(cells...)
	}
	p.Table(t)
	if !p.NoHeaders {
		p.Printf("Leader: %s\n", leader)
		if alone {
			p.Printf("The server is not in a pool: set listen.gossip in its configuration to create one.\n")
		}
	}
}
