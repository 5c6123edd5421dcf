package rpc

import (
	"context"
	"time"
)

// Handler answers the calls of other servers: core/server. What only the leader
// can answer fails with a *NotLeaderError elsewhere.
type Handler interface {
	// Status says how this server stands, and whether it takes part in the cluster
	// that begin names, where begin is not empty.
	Status(ctx context.Context, begin string) (*Status, error)
	// Dequeue waits for at most wait; nothing is no error. Deliveries of which the
	// caller is gone are given back by whoever answers.
	Dequeue(ctx context.Context, most int, wait time.Duration) (*Deliveries, error)
	Settle(ctx context.Context, s Settlement) error
	// SubmitPlan holds the lease of the plan's evaluation meanwhile, whatever becomes
	// of the caller: a lease that a caller held and let go of would never end.
	SubmitPlan(ctx context.Context, plan []byte) (result []byte, err error)
	// WriteEvals holds the lease as well. What comes of a delivery that is void is not
	// written.
	WriteEvals(ctx context.Context, e Endings) error
	Apply(ctx context.Context, entry []byte) (Applied, error)
	// Keyring changes this server's keys of gossip, and lists the digests of those
	// that there are then.
	Keyring(ctx context.Context, verb KeyVerb, key []byte) (digests []string, err error)
}

// Status is how a server stands.
type Status struct {
	ServerID, ClusterID string   // ClusterID is "" while there is none
	LastIndex, LastTerm uint64   // of the log; 0: nothing was ever written
	HasPeers            bool     // it knows servers of a cluster
	Servers             []string // ids of those, as it knows
	LastContact         time.Duration
	Applied             uint64 // index of the state
	LeaderID            string
	Term                uint64
	Expect              int
	Oldest, Newest      uint32 // meanings of log entries that it understands
	Build               string
	Promised            bool // it takes part in what begin named, and in no other for a while
}

// Deliveries are evaluations to work on.
type Deliveries struct {
	Evals []byte // as many as there are in List
	List  []Delivery
	Term  uint64 // of the leader that hands them out
}

// Delivery is one evaluation's part beside the evaluation.
type Delivery struct {
	Token, WaitIndex uint64
	Attempt          int
	Trace            string // that the evaluation belongs to, a traceparent of W3C; "": none
}

// Verb is what becomes of a delivery.
type Verb int

// What may become of a delivery.
const (
	Ack Verb = iota + 1
	Nack
	Renew
)

// Settlement is one delivery's end, or more time for it.
type Settlement struct {
	Verb     Verb
	EvalID   string
	Token    uint64
	Snapshot uint64 // of Ack
}

// Endings are evaluations as the work on a delivery left them.
type Endings struct {
	EvalID string
	Token  uint64
	Evals  []byte
}

// Applied is what became of an entry.
type Applied struct {
	Index                uint64
	RefusalCode, Refusal string // why a committed entry did nothing; "": it was done
}

// KeyVerb is what is done with a key of gossip.
type KeyVerb int

// What can be done with keys.
const (
	KeyList KeyVerb = iota
	KeyInstall
	KeyUse
	KeyRemove
)
