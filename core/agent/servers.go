package agent

import (
	"context"
	"errors"
	"time"
)

// ErrUnknownNode means that the node is not registered with the servers, or is
// registered with another secret: it registers again.
var ErrUnknownNode = errors.New("node is not registered")

// Servers holds the calls of an agent to its cluster. Errors that wrap ErrUnknownNode
// make it register again; requests with other errors are repeated.
type Servers interface {
	// Register registers the node, or updates its description.
	Register(ctx context.Context, node *Node, secret string) (Lease, error)
	// Heartbeat renews the lease.
	Heartbeat(ctx context.Context, nodeID, secret string) (Lease, error)
	// Allocations waits until the node's allocations have changed after index, or until
	// wait is over, and returns every allocation that should run or stop on the node. If
	// index is 0, it returns at once.
	Allocations(ctx context.Context, nodeID, secret string, index uint64, wait time.Duration) (*Assignment, error)
	// Update reports the status of allocations.
	Update(ctx context.Context, nodeID, secret string, updates []Update) error
}

// Lease is the time within which the servers expect the next heartbeat.
type Lease struct {
	TTL time.Duration
}

// Assignment holds every allocation that a node should run or stop, as of Index.
type Assignment struct {
	Index       uint64
	Allocations []*Allocation
}

// Update is a node's report on an allocation.
type Update struct {
	ID     string
	Status Status
	// Text is a description for operators. If the allocation is complete, it is why the node
	// stopped it, or empty if it ended by itself: only then is its work done.
	Text string
	// Started is the time at which the allocation started; zero if it has not.
	Started time.Time
	// EvictedBy is EvictedByPressure if the node itself evicted the allocation.
	EvictedBy string
}

// EvictedByPressure is the reason of an eviction because of memory pressure.
const EvictedByPressure = "pressure"

// Status is the client status of an allocation, in the API's terms.
type Status string

// The statuses that a node reports.
const (
	StatusPending  Status = "pending"
	StatusRunning  Status = "running"
	StatusComplete Status = "complete"
	StatusFailed   Status = "failed"
)

// Terminal reports whether the allocation has ended for good.
func (s Status) Terminal() bool { return s == StatusComplete || s == StatusFailed }
