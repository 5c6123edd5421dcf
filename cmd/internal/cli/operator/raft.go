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
		Short: "Show the status of replication and its servers",
		Long: `Show the status of replication on the addressed server, and the servers of the cluster.

The hash of the state is computed on request. It is equal on servers that have applied
the same index. For a stopped server, cede operator doctor DIR --replay computes it.

The cluster version determines which entries the log may contain. During an upgrade it
is that of the older release; the leader raises it when every server runs the new
release (see cede server members -o wide). It is never lowered.`,
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
