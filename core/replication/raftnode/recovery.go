package raftnode

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// Recover replaces the members of a cluster that lost its quorum, on one stopped
// server. Everything in that server's log counts as committed afterwards;
// therefore run it once, on the server with the newest log. The configuration is
// that of Open; Transport may be nil.
func Recover(cfg Config, servers []raft.Server) error {
	transport := cfg.Transport
	if transport == nil {
		_, inmem := raft.NewInmemTransport("recovery")
		defer func() { _ = inmem.Close() }() // it has no connections
		transport = inmem
	}
	err := raft.RecoverCluster(cfg.raft(), cfg.fsm(), cfg.Log, cfg.Stable, cfg.Snapshots, transport, raft.Configuration{Servers: servers})
	if err != nil {
		return fmt.Errorf("recover the cluster: %w", err)
	}
	return nil
}
