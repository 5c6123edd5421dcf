package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newServerJoinCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "join ADDRESS...", Short: "Have a server join a pool",
		Long: `Have the one server that --addr names join the pool of the servers that gossip at
these addresses; one that answers suffices. server.join in its configuration does
the same at every start.`,
		Example: "  cede server join 10.0.0.1:4648",
		Args:    arguments(1, 16, "addresses, HOST:PORT"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		if err := c.oneServer(cmd); err != nil {
			return document{}, err
		}
		r, err := c.client.Operator().Join(ctx, args...)
		if err != nil {
			return document{}, err
		}
		return document{data: r, names: []string{fmt.Sprint(r.Joined)}, page: func(p page) {
			p.printf("Joined through %d of %d addresses\n", r.Joined, len(args))
		}}, nil
	})
}

func newServerLeaveCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "leave", Short: "Have a server leave the pool for good, and stop",
		Long: `Have the one server that --addr names hand its leadership over, leave replication and
the pool, and stop. To stop a server that is to come back, stop its process: it keeps
its place.`,
		Example: "  cede server leave --addr http://10.0.0.3:4646",
		Args:    arguments(0, 0, "no arguments"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, _ []string) (document, error) {
		if err := c.oneServer(cmd); err != nil {
			return document{}, err
		}
		self, err := c.client.Status().Self(ctx)
		if err != nil {
			return document{}, err
		}
		v := left{ID: self.Member.Name, Name: self.Member.Tags["name"], Address: c.client.Address()}
		if err := c.client.Operator().Leave(ctx); err != nil {
			return document{}, err
		}
		return said(v, v.ID, "Server %s at %s has left the pool and stops", v, v.Address), nil
	})
}

// left is a server that left.
type left struct {
	ID      string
	Name    string `json:",omitempty"`
	Address string // that it was asked at
}

func (v left) String() string {
	if v.Name == "" || v.Name == v.ID {
		return v.ID
	}
	return v.Name + " (" + v.ID + ")"
}

// oneServer refuses several addresses: what is asked of a server itself must not be done
// by whichever of them answers first.
func (c *connection) oneServer(cmd *cobra.Command) error {
	conf, err := c.config()
	if err != nil {
		return err
	}
	list := strings.FieldsFunc(cmp.Or(conf.Address, client.DefaultAddress), func(r rune) bool { return r == ',' || r == ' ' })
	if len(list) < 2 {
		return nil
	}
	return usagef("name the one that is meant: --addr "+list[0], "%s is about one server, and %d addresses are given: %s",
		cmd.CommandPath(), len(list), strings.Join(list, ", "))
}
