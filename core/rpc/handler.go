package rpc

import (
	"context"
	"time"
)

// A Handler serves the calls of other servers; core/server implements it. Methods that
// only the leader can serve return a *NotLeaderError on other servers.
type Handler interface {
	// Status returns the status of this server. If bootstrap is not empty, the reply also
	// holds whether the server takes part in the cluster that bootstrap names.
	Status(ctx context.Context, bootstrap string) (*Status, error)
	// Dequeue waits at most for wait and returns no error if there are no evaluations. If
	// the caller is gone, the implementation nacks the deliveries.
	Dequeue(ctx context.Context, most int, wait time.Duration) (*Deliveries, error)
	UpdateDelivery(ctx context.Context, s DeliveryUpdate) error
	// SubmitPlan holds the lease of the plan's evaluation until it returns, even if the
	// caller is gone: a lease held by a caller that crashed would never expire.
	SubmitPlan(ctx context.Context, plan []byte) (result []byte, err error)
	// WriteEvals also holds the lease. It writes nothing if the delivery is void.
	WriteEvals(ctx context.Context, e EvalResults) error
	Apply(ctx context.Context, entry []byte) (Applied, error)
	// Keyring changes the gossip keys of this server, and returns the digests of the
	// resulting keys.
	Keyring(ctx context.Context, verb KeyVerb, key []byte) (digests []string, err error)
}

// A Status is the status of a server.
type Status struct {
	ServerID, ClusterID string   // "" if the server has no cluster
	LastIndex, LastTerm uint64   // of the log; 0 if the log is empty
	HasPeers            bool     // Raft's configuration lists at least one server
	Servers             []string // IDs in that configuration
	LastContact         time.Duration
	Applied             uint64 // index of the state
	LeaderID            string
	Term                uint64
	Expect              int
	Oldest, Newest      uint32 // versions of log entries that the server understands
	Build               string
	Promised            bool // the server takes part in the requested bootstrap, and for a while in no other
}

// Deliveries are evaluations to process.
type Deliveries struct {
	Evals []byte // encoded; as many as there are in List
	List  []Delivery
	Term  uint64 // of the leader that delivers them
}

// A Delivery is the part of a delivery that is not in the evaluation.
type Delivery struct {
	Token, WaitIndex uint64
	Attempt          int
	Trace            string // W3C traceparent of the evaluation; "" if it has none
}

// A DeliveryVerb is a change of a delivery.
type DeliveryVerb int

// Changes of a delivery.
const (
	Ack DeliveryVerb = iota + 1
	Nack
	Renew
)

// A DeliveryUpdate ends a delivery, or renews its lease.
type DeliveryUpdate struct {
	Verb     DeliveryVerb
	EvalID   string
	Token    uint64
	Snapshot uint64 // index that the evaluation was planned on; for Ack
}

// EvalResults are the evaluations that result from processing a delivery.
type EvalResults struct {
	EvalID string
	Token  uint64
	Evals  []byte
}

// Applied is the result of an entry.
type Applied struct {
	Index                uint64
	RefusalCode, Refusal string // reason why a committed entry had no effect; "" if it had one
}

// A KeyVerb is an operation on the gossip keys.
type KeyVerb int

// Operations on the gossip keys.
const (
	KeyList KeyVerb = iota
	KeyInstall
	KeyUse
	KeyRemove
)
