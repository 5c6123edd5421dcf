package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func newOperatorRaftCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "raft",
		Short: "Say how replication stands, and who the servers are",
		Long: `Say how replication stands on the server that is asked, and who the servers are.

The state's hash is equal on servers whose state is, and at the same index it must
be: it is worked out when it is asked for. cede operator doctor DIR --replay works it
out for a server that is stopped.

The version is that of the whole cluster: what its log may hold. While servers are
upgraded one after the other it is the older release's; the leader raises it once every
server runs the new one, which cede server members -o wide tells, and it never goes back.`,
		Example: "  cede operator raft\n  cede operator raft -t '{{.StateHash}}'",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	cmd.AddCommand(newRaftRemoveCmd(env), newRaftRecoverCmd(env))
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		s, err := c.Client.Operator().RaftStatusWithHash(ctx)
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: s, Names: []string{s.ServerID}, Page: func(p cmdutil.Page) {
			leader := s.LeaderID
			if s.Leader != "" && s.Leader != leader {
				leader += " (" + s.Leader + ")"
			}
			contact := ""
			if !strings.EqualFold(s.State, "leader") {
				contact = s.LastContact.String()
			}
			at := ""
			if s.StateIndex > 0 {
				at = fmt.Sprint(s.StateIndex)
			}
			version := ""
			if s.Version > 0 {
				version = fmt.Sprintf("%d (this server understands %d to %d)", s.Version, s.Oldest, s.Newest)
			}
			p.Properties("server", s.ServerID, "state", strings.ToLower(s.State), "leader", leader, "term", fmt.Sprint(s.Term), "last index", fmt.Sprint(s.LastIndex),
				"committed", fmt.Sprint(s.CommitIndex), "applied", fmt.Sprint(s.AppliedIndex), "last snapshot", fmt.Sprint(s.LastSnapshot),
				"last contact", contact, "state index", at, "state hash", s.StateHash,
				"version", version, "workers", workersText(s.Workers))
			p.Title("Servers")
			t := cmdutil.NewTable("ID", "NAME", "ADDRESS", "LEADER", "VOTES")
			for _, r := range s.Servers {
				t.Row(r.ID, r.Node, r.Address, cmdutil.YesNo(r.Leader), cmdutil.YesNo(r.Voter))
			}
			p.Table(t)
		}}, nil
	})
}
