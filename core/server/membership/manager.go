package membership

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// MemberStatus is the status of a member in the pool.
type MemberStatus uint8

// The statuses of a member.
const (
	MemberAlive MemberStatus = iota
	MemberFailed
	MemberLeft
)

func (s MemberStatus) String() string { return [...]string{"alive", "failed", "left"}[s] }

// A Member is a server of the pool.
type Member struct {
	ID        string // permanent; not an address
	Status    MemberStatus
	Since     time.Time // when this server observed the change to Status
	ClusterID string    // of the state that it holds; "" if it holds none

	Raft, RPC string // host:port
	HTTP      string // URL of its API

	Build    string
	Expect   int // servers that bootstrap the cluster together; 0: it joins one
	NonVoter bool
}

// Gossip is the membership of the pool as this server observes it. cmd adapts package
// gossip.
type Gossip interface {
	// Members returns all members, this server included.
	Members() []Member
	// Changed has a value when Members may have changed. Values may be lost.
	Changed() <-chan struct{}
	// SetCluster announces the cluster that this server belongs to.
	SetCluster(id string) error
	Join(addrs ...string) (int, error)
	// Forget removes a member that is not alive, before its time.
	Forget(id string)
	// Leave announces that this server leaves for good.
	Leave(ctx context.Context) error
	// Keyring changes the gossip keys of this server, and returns the digests of its keys.
	Keyring(verb rpc.KeyVerb, key []byte) (digests []string, err error)
}

// Peers calls other servers, by ID: *rpc.Client.
type Peers interface {
	Status(ctx context.Context, to, bootstrap string) (*rpc.Status, error)
	Keyring(ctx context.Context, to string, verb rpc.KeyVerb, key []byte) (digests []string, err error)
}

// Raft changes the servers of the cluster: *raft.Raft.
type Raft interface {
	autopilot.Raft
	BootstrapCluster(c raft.Configuration) raft.Future
}

var _ Raft = (*raft.Raft)(nil)

// Log is the part of the replicated log that a Manager uses.
type Log interface {
	IsLeader() bool
	Leader() (id, addr string)
	Term() uint64
	Transfer(ctx context.Context) error
}

// Timing holds the intervals and time limits of a pool. A zero field means the default.
type Timing struct {
	Look      time.Duration // between two bootstrap attempts; default: 500ms
	Reconcile time.Duration // between two comparisons of members and voters; default: 60s
	Stable    time.Duration // for which a new server must be healthy before it votes; default: 10s
	Dead      time.Duration // after which a failed server is removed, longer than a restart; default: 10m
	Health    time.Duration // between two health checks of the servers; default: 2s
	Promote   time.Duration // between two checks for promotions; default: 5s
	Poll      time.Duration // for which a follower waits for evaluations at the leader; default: 20s
}

// WithDefaults returns t with defaults in place of zero values.
func (t Timing) WithDefaults() Timing {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&t.Look, 500 * time.Millisecond},
		{&t.Reconcile, time.Minute},
		{&t.Stable, 10 * time.Second},
		{&t.Dead, 10 * time.Minute},
		{&t.Health, 2 * time.Second},
		{&t.Promote, 5 * time.Second},
		{&t.Poll, 20 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	return t
}

// Config configures a Manager. ServerID, Log, Writer, Clock and Logger are required.
type Config struct {
	ServerID string
	Build    string // version of the binary, for other servers to show
	Gossip   Gossip // nil: this server is the only one; Peers and Raft are required otherwise
	Peers    Peers
	Raft     Raft
	Log      Log
	Writer   *logwriter.Writer
	// Expect is how many servers bootstrap a cluster together; 0: this server waits until a
	// cluster adds it.
	Expect   int
	Versions replication.Versions // of the log that this server understands
	Timing   Timing
	Clock    clock.Clock
	Logger   *slog.Logger
}

// A Manager manages the membership of one server. Make it with New.
type Manager struct {
	serverHealth
	cfg  Config
	vote bootstrapVote
}

// New returns a Manager that does nothing before Run.
func New(c Config) *Manager { return &Manager{cfg: c} }

// Run does the work of a server that does not depend on leadership, until ctx ends: it
// bootstraps a cluster if necessary, announces the cluster, and makes gossip forget failed
// servers if they were removed.
func (m *Manager) Run(ctx context.Context) {
	if m.cfg.Gossip == nil {
		return
	}
	m.bootstrap(ctx)
	removed := removedServers{}
	for announced := ""; ; {
		removed.forget(m)
		if id := m.clusterID(); id != announced && id != "" { // a restored snapshot may have another ID
			if err := m.cfg.Gossip.SetCluster(id); err != nil {
				m.cfg.Logger.WarnContext(ctx, "failed to announce the cluster", "err", err)
			} else {
				announced = id
			}
		}
		if !clock.Sleep(ctx, m.cfg.Clock, m.cfg.Timing.Look) {
			return
		}
	}
}

// removedServers holds the servers that belonged to the cluster at some time: true for
// those that still do.
type removedServers map[string]bool

// forget makes gossip forget servers that failed and were then removed from the cluster.
// Gossip would list them for as long as servers that may come back. Every server does so
// on its own. A server that left stays listed as such.
func (r removedServers) forget(m *Manager) {
	servers := m.servers()
	if len(servers) == 0 {
		return // Raft is shutting down
	}
	for id := range r {
		r[id] = false
	}
	for _, server := range servers {
		r[string(server.ID)] = true
	}
	for id, belongs := range r {
		if belongs || id == m.cfg.ServerID {
			continue
		}
		if member, known := m.Member(id); !known || member.Status == MemberFailed {
			m.cfg.Gossip.Forget(id)
			delete(r, id)
		}
	}
}

func (m *Manager) clusterID() string { return m.cfg.Writer.Snapshot().Meta().ClusterID }

// Members returns the members of the pool; nil if there is none.
func (m *Manager) Members() []Member {
	if m.cfg.Gossip == nil {
		return nil
	}
	return m.cfg.Gossip.Members()
}

// Member returns a member by its ID.
func (m *Manager) Member(id string) (Member, bool) {
	for _, member := range m.Members() {
		if member.ID == id {
			return member, true
		}
	}
	return Member{}, false
}

// LeaderURL returns the URL of the leader's API, or "" if the leader is unknown.
func (m *Manager) LeaderURL() string {
	id, _ := m.cfg.Log.Leader()
	member, _ := m.Member(id)
	return member.HTTP
}

// servers returns the servers in the latest configuration of this server.
func (m *Manager) servers() []raft.Server {
	f := m.cfg.Raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// RaftServer returns a server of the cluster by its ID.
func (m *Manager) RaftServer(id string) (raft.Server, bool) {
	for _, r := range m.servers() {
		if string(r.ID) == id {
			return r, true
		}
	}
	return raft.Server{}, false
}

// Voters returns the IDs of the servers that vote.
func (m *Manager) Voters() []string {
	if m.cfg.Raft == nil {
		return []string{m.cfg.ServerID}
	}
	var ids []string
	for _, r := range m.servers() {
		if r.Suffrage == raft.Voter {
			ids = append(ids, string(r.ID))
		}
	}
	if len(ids) == 0 {
		return []string{m.cfg.ServerID}
	}
	return ids
}

// CountVoters returns how many servers vote, and how many of them are alive. The loss of
// one voter goes unnoticed until another one fails, so both are metrics.
func (m *Manager) CountVoters() (all, alive int) {
	if m.cfg.Raft == nil {
		return 1, 1
	}
	isAlive := map[string]bool{m.cfg.ServerID: true}
	for _, member := range m.Members() {
		isAlive[member.ID] = isAlive[member.ID] || member.Status == MemberAlive
	}
	voters := m.Voters()
	for _, id := range voters {
		if isAlive[id] {
			alive++
		}
	}
	return len(voters), alive
}

// HasLog reports whether this server has log entries or a configuration with servers.
func (m *Manager) HasLog() bool { return m.cfg.Raft.LastIndex() > 0 || len(m.servers()) > 0 }

// Status returns the status of this server. If bootstrap is not empty, the server also
// votes for bootstrapping the cluster that it names, if it can.
func (m *Manager) Status(_ context.Context, bootstrap string) (*rpc.Status, error) {
	snap := m.cfg.Writer.Snapshot()
	st := &rpc.Status{
		ServerID: m.cfg.ServerID, ClusterID: snap.Meta().ClusterID, Applied: snap.Index(), Term: m.cfg.Log.Term(),
		Expect: m.cfg.Expect, Oldest: m.cfg.Versions.Oldest, Newest: m.cfg.Versions.Newest, Build: m.cfg.Build, LastContact: -1,
	}
	st.LeaderID, _ = m.cfg.Log.Leader()
	if r := m.cfg.Raft; r != nil {
		stats := r.Stats()
		st.LastIndex = r.LastIndex()
		st.LastTerm, _ = strconv.ParseUint(stats["last_log_term"], 10, 64)
		st.LastContact = parseLastContact(stats["last_contact"])
		for _, server := range m.servers() {
			st.Servers = append(st.Servers, string(server.ID))
		}
		st.HasPeers = len(st.Servers) > 0
	}
	if bootstrap != "" {
		st.Promised = st.LastIndex == 0 && !st.HasPeers && m.vote.grant(bootstrap, m.cfg.Clock.Now())
	}
	return st, nil
}

// parseLastContact parses Raft's text: "never", "0" on the leader, or a duration. It
// returns -1 for "never".
func parseLastContact(text string) time.Duration {
	if text == "0" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return -1
	}
	return d
}

// Versions returns the version of the cluster, and those that this server understands.
func (m *Manager) Versions() (cluster uint32, understood replication.Versions) {
	return m.cfg.Writer.Snapshot().Meta().Version, m.cfg.Versions
}

// errNoPool returns the error of a call that requires a pool.
func errNoPool() error {
	return apierror.New(apierror.CodeUnavailable, "gossip is disabled on this server").
		WithHint("set listen.gossip, and server.join or server.bootstrap_expect, and restart it")
}
