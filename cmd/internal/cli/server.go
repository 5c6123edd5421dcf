package cli

import (
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
		Example: "  cede server members\n  cede server members -o wide",
		Args:    arguments(0, 0, "no arguments"),
	}
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		api, err := conn.dial()
		if err != nil {
			return err
		}
		m, err := api.Status().Members(cmd.Context())
		if err != nil {
			return interruptedBy(cmd.Context(), err)
		}
		leader, err := api.Status().Leader(cmd.Context())
		if err != nil && !client.HasCode(err, client.CodeNoLeader) {
			return interruptedBy(cmd.Context(), err)
		}
		v := struct {
			*client.Members
			Leader string // address
		}{m, leader}
		return out.show(document{data: v, names: namesOf(m.Members, func(m *client.Member) string { return m.Name }), page: func(p page) {
			titles := []string{"NAME", "ADDRESS", "STATUS"}
			if p.wide {
				titles = append(titles, "TAGS")
			}
			t := columns(titles...)
			for _, m := range m.Members {
				address := m.Addr
				if m.Port > 0 {
					address = net.JoinHostPort(m.Addr, strconv.Itoa(int(m.Port)))
				}
				cells := []string{m.Name, address, m.Status}
				if p.wide {
					cells = append(cells, texts(m.Tags))
				}
				t.Row(cells...)
			}
			p.table(t)
			if !p.bare {
				if leader == "" {
					leader = "none"
				}
				p.printf("Leader: %s\n", leader)
			}
		}})
	}
	return cmd
}
