package raftnode

import (
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

// NewTransport returns a Raft transport over streams. It does not pipeline: with
// pipelining, a follower that rejects entries once may never receive entries
// again while its heartbeats succeed, and there is no measurable gain. addresses
// resolves a server's current address; nil uses the address in the configuration
// of the cluster.
func NewTransport(streams raft.StreamLayer, addresses raft.ServerAddressProvider, log *slog.Logger) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: addresses, Logger: NewLogger(log), Stream: streams,
		MaxPool: 3, MaxRPCsInFlight: 1, Timeout: 10 * time.Second,
	})
}
