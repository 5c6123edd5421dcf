package server

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newServerJoinCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "join ADDRESS...", Short: "Join a server to a pool",
		Long: `Join the server at --addr to the pool whose servers have these gossip addresses; one
reachable address is sufficient.

The addresses are not stored: server.join in the configuration joins at every start.`,
		Example: "  cede server join 10.0.0.1:4648",
		Args:    cmdutil.PositionalArgs(1, 16, "addresses, HOST:PORT"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		if err := requireOneServer(c, cmd); err != nil {
			return cmdutil.Document{}, err
		}
		r, err := c.Client.Operator().Join(ctx, args...)
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: r, Names: []string{fmt.Sprint(r.Joined)}, Page: func(p cmdutil.Page) {
			p.Printf("Joined the pool through %d of %s\n", r.Joined, cmdutil.Count(len(args), "address", "addresses"))
		}}, nil
	})
}

func newServerLeaveCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "leave", Short: "Remove a server from the pool and stop it",
		Long: `Transfer the leadership of the server at --addr, remove it from replication and from the
pool, and stop it.

To stop a server that will return, stop its process instead: it stays in the pool.`,
		Example: "  cede server leave --addr http://10.0.0.3:4646",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		if err := requireOneServer(c, cmd); err != nil {
			return cmdutil.Document{}, err
		}
		self, err := c.Client.Status().Self(ctx)
		if err != nil {
			return cmdutil.Document{}, err
		}
		v := leaveResult{ID: self.Member.Name, Name: self.Member.Tags["name"], Address: c.Client.Address()}
		if err := c.Client.Operator().Leave(ctx); err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.MessageDocument(v, v.ID, "Server %s at %s has left the pool and is stopping", v, v.Address), nil
	})
}

// leaveResult describes a server that left.
type leaveResult struct {
	ID      string
	Name    string `json:",omitempty"`
	Address string // address of the request
}

func (v leaveResult) String() string {
	if v.Name == "" || v.Name == v.ID {
		return v.ID
	}
	return v.Name + " (" + v.ID + ")"
}

// requireOneServer returns an error if several addresses are given: an operation on a
// particular server must not be performed by the first server that answers.
func requireOneServer(c *cmdutil.Connection, cmd *cobra.Command) error {
	conf, err := c.ClientConfig()
	if err != nil {
		return err
	}
	list := strings.FieldsFunc(cmp.Or(conf.Address, client.DefaultAddress), func(r rune) bool { return r == ',' || r == ' ' })
	if len(list) < 2 {
		return nil
	}
	return cmdutil.Usagef("select one server: --addr "+list[0], "%s applies to one server, but %d addresses are given: %s",
		cmd.CommandPath(), len(list), strings.Join(list, ", "))
}
