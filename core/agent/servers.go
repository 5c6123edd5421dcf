package agent

import (
	"context"
	"errors"
	"time"
)

// ErrUnknownNode means that the servers do not know the node, or know it by
// another secret: it registers again.
var ErrUnknownNode = errors.New("the servers do not know this node")

// Servers is what an agent asks of its cluster. Errors that wrap ErrUnknownNode
// make it register again; whatever else fails is tried again.
type Servers interface {
	// Register makes the node known, or renews what is known of it.
	Register(ctx context.Context, node *Node, secret string) (Lease, error)
	// Heartbeat renews the lease.
	Heartbeat(ctx context.Context, nodeID, secret string) (Lease, error)
	// Allocations waits, at most for wait, until something of the node's changed
	// after index, and gives all that is to run or to stop here. Index 0 does not
	// wait.
	Allocations(ctx context.Context, nodeID, secret string, index uint64, wait time.Duration) (*Assignment, error)
	// Update tells what became of allocations.
	Update(ctx context.Context, nodeID, secret string, updates []Update) error
}

// Lease is how long the servers take the node for alive.
type Lease struct {
	TTL time.Duration
}

// Assignment is everything that a node has to run or to stop, as of Index.
type Assignment struct {
	Index       uint64
	Allocations []*Allocation
}

// Update is what a node says of an allocation.
type Update struct {
	ID     string
	Status Status
	Text   string // for people
	// Started is when the work began; zero before that.
	Started time.Time
	// EvictedBy is EvictedByPressure where the node evicted by itself.
	EvictedBy string
}

// EvictedByPressure is the reason of an eviction that memory forced on a node.
const EvictedByPressure = "pressure"

// Status is what became of an allocation, in the API's words.
type Status string

// What a node may say of an allocation.
const (
	StatusPending  Status = "pending"
	StatusRunning  Status = "running"
	StatusComplete Status = "complete"
	StatusFailed   Status = "failed"
)

// Terminal is whether the allocation will never run again.
func (s Status) Terminal() bool { return s == StatusComplete || s == StatusFailed }
