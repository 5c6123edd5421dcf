package server

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"github.com/cede-scheduler/cede/core/rpc"
)

// MemberStatus is what the pool thinks of a member.
type MemberStatus uint8

// The states of a member.
const (
	MemberAlive MemberStatus = iota
	MemberFailed
	MemberLeft
)

func (s MemberStatus) String() string { return [...]string{"alive", "failed", "left"}[s] }

// Member is a server of the pool.
type Member struct {
	ID        string // for life; no address
	Status    MemberStatus
	Since     time.Time // when it got this status, as this server saw it
	ClusterID string    // of the state it holds; "" while it holds none

	Gossip, Raft, RPC string // host:port
	HTTP              string // URL of its API

	Region, Datacenter, Build string
	Oldest, Newest            uint32 // meanings of log entries that it understands
	Expect                    int    // servers that it waits for before the first election; 0: none
	NonVoter                  bool
}

// Membership is the pool as this server sees it: gossip, which cmd adapts.
type Membership interface {
	// Members lists everybody, this server included.
	Members() []Member
	// Changed has a value when Members may have changed; values may be lost.
	Changed() <-chan struct{}
	// SetCluster tells the others to which cluster this server belongs.
	SetCluster(id string) error
	Join(addrs ...string) (int, error)
	// Forget drops a member that is not alive before its time.
	Forget(id string)
	// Leave tells the others that this server goes for good.
	Leave(ctx context.Context) error
	// Keyring changes this server's keys, and lists the digests of those there are.
	Keyring(verb rpc.KeyVerb, key []byte) (digests []string, err error)
}

// Peers is how other servers are asked, by id: *rpc.Client.
type Peers interface {
	Status(ctx context.Context, to, begin string) (*rpc.Status, error)
	Dequeue(ctx context.Context, to string, most int, wait time.Duration) (*rpc.Deliveries, error)
	Settle(ctx context.Context, to string, s rpc.Settlement) error
	SubmitPlan(ctx context.Context, to string, plan []byte) (result []byte, err error)
	WriteEvals(ctx context.Context, to string, e rpc.Endings) error
	Apply(ctx context.Context, to string, entry []byte) (rpc.Applied, error)
	Keyring(ctx context.Context, to string, verb rpc.KeyVerb, key []byte) (digests []string, err error)
}

var _ Peers = (*rpc.Client)(nil)

// Raft is who belongs to the cluster, and votes: *raft.Raft.
type Raft interface {
	autopilot.Raft
	BootstrapCluster(c raft.Configuration) raft.Future
}

var _ Raft = (*raft.Raft)(nil)

// PoolTiming is how patient the servers of a pool are. A zero field means the
// default.
type PoolTiming struct {
	Look      time.Duration // between two looks for who may begin a cluster together; default: 500ms
	Reconcile time.Duration // between two comparisons of members and voters; default: 60s
	Stable    time.Duration // for which a newcomer does well before it votes; default: 10s
	Dead      time.Duration // after which a failed server is removed, longer than a restart; default: 10m
	Health    time.Duration // between two looks at how the servers do; default: 2s
	Promote   time.Duration // between two looks at who may vote; default: 5s
	Poll      time.Duration // for which a follower's workers wait at the leader; default: 20s
}

func (t PoolTiming) withDefaults() PoolTiming {
	orElse(&t.Look, 500*time.Millisecond)
	orElse(&t.Reconcile, time.Minute)
	orElse(&t.Stable, 10*time.Second)
	orElse(&t.Dead, 10*time.Minute)
	orElse(&t.Health, 2*time.Second)
	orElse(&t.Promote, 5*time.Second)
	orElse(&t.Poll, 20*time.Second)
	return t
}

// Members lists the pool; nil where there is none.
func (s *Server) Members() []Member {
	if s.cfg.Membership == nil {
		return nil
	}
	return s.cfg.Membership.Members()
}

// member is a member by its id.
func (s *Server) member(id string) (Member, bool) {
	for _, m := range s.Members() {
		if m.ID == id {
			return m, true
		}
	}
	return Member{}, false
}

// LeaderURL is where the leader's API listens; "" while nobody knows.
func (s *Server) LeaderURL() string {
	id, _ := s.cfg.Log.Leader()
	m, _ := s.member(id)
	return m.HTTP
}
