package operator

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/hashicorp/raft"
	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/datadir"
)

func newRaftRemoveCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove ID", Short: "Remove a failed server from replication",
		Long: `Remove a server that will not return from replication and from the pool. cede operator
keyring no longer waits for it.

A server that has failed for ten minutes is removed automatically, unless too few would
remain. A server that runs is not removed: use cede server leave.`,
		Example: "  cede operator raft remove IYYFA72375IVMBUU637ZSVNWYI",
		Args:    cmdutil.PositionalArgs(1, 1, "one server's id"),
	}
	conn := cmdutil.ConnectionFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := conn.Dial()
		if err != nil {
			return err
		}
		return cmdutil.InterruptError(cmd.Context(), api.Operator().RemovePeer(cmd.Context(), args[0]))
	}
	return cmd
}

func newRaftRecoverCmd(env *cmdutil.Env) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "recover DIR --peers FILE", Short: "Recover a cluster that lost its quorum for good",
		Long: `Replace the list of servers in the data directory of a stopped server, if a cluster has
lost its quorum for good. The file lists the servers that remain:

  [{"id": "IYYFA72375IVMBUU637ZSVNWYI", "address": "10.0.0.1:4647"}]

Run it on one server only, the one with the longest log (cede operator doctor DIR), and
include that server in the list. All entries of its log become committed, including
those that no majority had stored. Then start it; servers with an empty data directory
and server.join join it.

It does not contact other servers. If another server of the old cluster still runs, the
cluster splits in two.`,
		Example: "  cede operator raft recover /var/lib/cede --peers peers.json",
		Args:    cmdutil.PositionalArgs(1, 1, "one data directory"),
	}
	cmd.Flags().StringVar(&file, "peers", "", "`FILE` that lists the servers, JSON")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if file == "" {
			return cmdutil.Usagef("`cede operator raft recover --help` describes the file", "--peers is required")
		}
		servers, err := raft.ReadConfigJSON(file)
		if err != nil {
			return &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: fmt.Sprintf("%s: %v", file, cmdutil.WithoutPath(err)), Hint: `expected [{"id": "...", "address": "HOST:PORT"}]`, Err: err}
		}
		for _, s := range servers.Servers {
			if err := peerAddress(string(s.Address)); err != nil {
				return cmdutil.Usagef(`expected [{"id": "...", "address": "HOST:PORT"}], with advertise.rpc of each server as address`, "%s: server %s: %v", file, s.ID, err)
			}
		}
		done := env.Waiting("replaying the log")
		id, err := recoverServer(args[0], servers.Servers)
		done()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.Stdout, "Server %s will start with %s in its cluster\n", id, cmdutil.Count(len(servers.Servers), "server", "servers"))
		return err
	}
	return cmd
}

// peerAddress returns an error if other servers cannot connect to an address.
func peerAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, numeric := strconv.ParseUint(port, 10, 16); err != nil || host == "" || numeric != nil || n == 0 {
		return fmt.Errorf("invalid address %q: expected HOST:PORT", address)
	}
	return nil
}

// recoverServer writes another list of servers into a data directory and returns the
// ID of the server that owns it.
func recoverServer(dir string, servers []raft.Server) (string, error) {
	if sub := dir + "/server"; !isStore(dir) && isStore(sub) {
		dir = sub // the data directory of an agent
	}
	if !isStore(dir) {
		return "", &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: dir + " is not the data directory of a server", Hint: "use data_dir of the server's configuration"}
	}
	restoreOwner, err := recordOwner(dir)
	if err != nil {
		return "", err
	}
	store, err := storage.Open(storage.Config{Dir: dir, NewestCluster: replication.Newest})
	if err != nil {
		return "", errors.Join(doctorError(dir, err), restoreOwner())
	}
	id, err := store.ServerID(func() string { return "" }) // isStore has found one
	if err == nil && !hasServer(servers, id) {
		err = &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: fmt.Sprintf("the server of %s, %s, is missing in the list of peers", dir, id), Hint: "run the command on a server that is in the list"}
	}
	if err == nil {
		err = raftnode.Recover(raftnode.Config{
			ServerID: id, Log: store.Log(), Stable: store.Log(), Snapshots: store.Snapshots(), Store: state.New(), Modules: store.Blobs(),
		}, servers)
	}
	return id, errors.Join(err, store.Close(), restoreOwner())
}

func isStore(dir string) bool {
	_, err := os.Stat(datadir.Layout{Dir: dir}.NodeID())
	return err == nil
}

func hasServer(servers []raft.Server, id string) bool {
	return slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
}
