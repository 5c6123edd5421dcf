package replication

import (
	"context"
	"io"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/state"
)

// Node is this server's part in the log.
type Node struct{ raft *raft.Raft }

// Stats is what a node says of itself.
type Stats struct {
	State        string // Leader, Follower, Candidate or Shutdown
	Term         uint64
	LastIndex    uint64 // in the log
	CommitIndex  uint64
	AppliedIndex uint64
	FSMPending   uint64
	Servers      []raft.Server
	LastContact  string // since the leader was heard; "never" and "0" as raft says
}

// Open starts a node.
func Open(Config) (*Node, error) { return nil, ErrClosed }

// Bootstrap makes the servers a cluster; on a log that holds anything it does nothing.
func (n *Node) Bootstrap(_ ...raft.Server) error { return ErrClosed }

// Apply has an entry written to the log of a majority and applied here.
func (n *Node) Apply(context.Context, *Entry) (*Result, error) { return nil, ErrClosed }

// Leadership tells when this server becomes the leader and when it stops being it.
func (n *Node) Leadership() <-chan bool { return nil }

// IsLeader is whether this server leads.
func (n *Node) IsLeader() bool { return false }

// Leader is who leads; "" when nobody is known to.
func (n *Node) Leader() (id, addr string) { return "", "" }

// Term is the current term.
func (n *Node) Term() uint64 { return 0 }

// Barrier waits until everything written so far is applied here.
func (n *Node) Barrier(context.Context) error { return ErrClosed }

// VerifyLeader asks a majority whether this server still leads.
func (n *Node) VerifyLeader(context.Context) error { return ErrClosed }

// Transfer hands the leadership to another server.
func (n *Node) Transfer(context.Context) error { return ErrClosed }

// Stats is what the node says of itself.
func (n *Node) Stats() Stats { return Stats{} }

// TakeSnapshot cuts the log.
func (n *Node) TakeSnapshot(context.Context) error { return ErrClosed }

// SaveSnapshot writes the state to a file.
func (n *Node) SaveSnapshot(context.Context, io.Writer) error { return ErrClosed }

// RestoreSnapshot replaces the state of the cluster by that of a file.
func (n *Node) RestoreSnapshot(context.Context, io.Reader) error { return ErrClosed }

// Close stops the node.
func (n *Node) Close() error { return nil }

// Raft is what is underneath, for membership.
func (n *Node) Raft() *raft.Raft { return n.raft }

// Hash is equal on servers with equal state.
func Hash(*state.Snapshot) [32]byte { return [32]byte{} }
