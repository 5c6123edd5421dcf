package gossip

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Conflict is a member that claimed the id of another.
type Conflict struct {
	ID, Holder, Claimant string // the latter two are host:port
	Time                 time.Time
}

// maxConflicts bounds what is remembered of claimants.
const maxConflicts = 16

// membership is who is in the pool, and the doorkeeper. memberlist calls it with its
// own locks held, so it never calls back.
type membership struct {
	id      string
	cluster string
	log     interface {
		Warn(msg string, args ...any)
		Info(msg string, args ...any)
	}
	events chan Event

	mu        sync.Mutex
	tags      Tags
	encoded   []byte
	members   map[string]Member
	foreign   map[string]foreignMember // members that name another cluster, by id
	conflicts []Conflict
	refusal   error // why the last conversation was broken off

	logLimit logLimiter
}

var (
	_ memberlist.Delegate         = (*membership)(nil)
	_ memberlist.EventDelegate    = (*membership)(nil)
	_ memberlist.MergeDelegate    = (*membership)(nil)
	_ memberlist.AliveDelegate    = (*membership)(nil)
	_ memberlist.ConflictDelegate = (*membership)(nil)
)

func newMembership(cfg *Config) *membership {
	encoded, _ := cfg.Tags.encode() // Validate has seen it
	return &membership{
		id: cfg.ID, cluster: cfg.Cluster, log: cfg.log(), tags: cfg.Tags, encoded: encoded,
		members: map[string]Member{}, foreign: map[string]foreignMember{}, events: make(chan Event, 256),
	}
}

func (r *membership) setTags(t Tags) error {
	encoded, err := t.encode()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tags, r.encoded = t, encoded
	return nil
}

// markLeaving adds to the tags that this member is leaving.
func (r *membership) markLeaving() error {
	r.mu.Lock()
	t := r.tags
	r.mu.Unlock()
	t.Leaving = true
	return r.setTags(t)
}

func (r *membership) list() []Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	members := make([]Member, 0, len(r.members))
	for id, m := range r.members {
		if !r.foreign[id].unlisted {
			members = append(members, m)
		}
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

func (r *membership) listConflicts() []Conflict {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.conflicts)
	slices.Reverse(list)
	return list
}

// expire drops members that have been gone for longer than after.
func (r *membership) expire(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, m := range r.members {
		if m.Status != Alive && time.Since(m.Since) > after {
			delete(r.members, id)
			delete(r.foreign, id)
		}
	}
}

func (r *membership) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.members[id].Status != Alive {
		delete(r.members, id)
		delete(r.foreign, id)
	}
}

// popRefusal is why the last conversation was broken off, once.
func (r *membership) popRefusal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.refusal
	r.refusal = nil
	return err
}

// NotifyJoin is told of a member that is there.
func (r *membership) NotifyJoin(n *memberlist.Node) { r.update(n, Alive) }

// NotifyUpdate is told of a member that moved or says something else of itself.
func (r *membership) NotifyUpdate(n *memberlist.Node) { r.update(n, Alive) }

// NotifyLeave is told of a member that left, stopped or failed.
func (r *membership) NotifyLeave(n *memberlist.Node) {
	m, err := memberOf(n)
	if err == nil && m.Tags.Leaving {
		r.update(n, Left)
		return
	}
	if n.Name != r.id { // else it stops, and nobody asks it any more
		r.update(n, Failed)
	}
}

func (r *membership) update(n *memberlist.Node, status Status) {
	m, err := memberOf(n)
	if err != nil { // NotifyAlive lets nobody in whose tags cannot be read
		r.log.Warn("a member is ignored", "member", n.Name, "err", err)
		return
	}
	m.Status, m.Since = status, time.Now()
	r.mu.Lock()
	before, known := r.members[m.ID]
	if known && before.Status == status {
		m.Since = before.Since
	}
	r.members[m.ID] = m
	if status == Alive {
		delete(r.foreign, m.ID) // what it says now was looked at
	}
	out := r.foreign[m.ID].unlisted
	r.mu.Unlock()
	if out {
		return
	}
	if !known || before.Status != status {
		r.log.Info("member", "id", m.ID, "address", m.Addr, "status", status.String())
	}
	r.emit(Event{Member: m, Before: before.Status, New: !known})
}

func (r *membership) emit(e Event) {
	select {
	case r.events <- e:
	default:
	}
}

// NotifyMerge looks at everybody whom the other side of a join knows. One
// stranger among them means that two pools are about to become one.
func (r *membership) NotifyMerge(peers []*memberlist.Node) error {
	var errs []error
	for _, n := range peers {
		if err := r.admit(n); err != nil {
			errs = append(errs, err)
		}
	}
	err := errors.Join(errs...)
	r.mu.Lock()
	r.refusal = err
	r.mu.Unlock()
	r.logRefusal(err)
	return err
}

// logRefusal says why somebody is not let in.
func (r *membership) logRefusal(err error) {
	if err != nil && r.logLimit.allow(err.Error()) {
		r.log.Warn("a member is not let in", "err", err)
	}
}

// NotifyAlive looks at one member that somebody tells of.
func (r *membership) NotifyAlive(n *memberlist.Node) error {
	if n.Name == r.id {
		return nil
	}
	err := r.admit(n)
	r.logRefusal(err)
	return err
}

// admit says why a member may not be in the pool.
func (r *membership) admit(n *memberlist.Node) error {
	m, err := memberOf(n)
	if err != nil {
		return fmt.Errorf("member %s at %s: %w", n.Name, m.Addr, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if theirs := m.Tags.ClusterID; r.isForeign(theirs) {
		if held, known := r.members[m.ID]; known && held.Addr == m.Addr {
			r.recordForeign(m.ID, theirs)
		}
		return fmt.Errorf("member %s at %s belongs to cluster %s, this server to %s: give one of them another name or other seeds", m.ID, m.Addr, theirs, r.tags.ClusterID)
	}
	if r.tags.Newest != 0 && m.Tags.Newest != 0 && (m.Tags.Oldest > r.tags.Newest || m.Tags.Newest < r.tags.Oldest) {
		return fmt.Errorf("member %s at %s (build %s) understands log versions %d to %d, this server %d to %d: upgrade one release at a time",
			m.ID, m.Addr, m.Tags.Build, m.Tags.Oldest, m.Tags.Newest, r.tags.Oldest, r.tags.Newest)
	}
	here := n.State == memberlist.StateAlive || n.State == memberlist.StateSuspect
	if held, known := r.members[m.ID]; m.ID == r.id && here && known && held.Status == Alive && held.Addr != m.Addr {
		return &duplicateIDError{m}
	}
	return nil
}

// duplicateIDError is of a pool that knows this server's id at another address.
type duplicateIDError struct{ Holder Member }

func (e *duplicateIDError) Error() string {
	return fmt.Sprintf("the id %s is used by a server at %s as well: it was killed there a moment ago and is let in soon, or its data directory was copied", e.Holder.ID, e.Holder.Addr)
}

// NotifyConflict is told of a member that claims the id of one that is there.
func (r *membership) NotifyConflict(holder, claimant *memberlist.Node) {
	at := func(n *memberlist.Node) string { return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port))) }
	c := Conflict{ID: holder.Name, Holder: at(holder), Claimant: at(claimant), Time: time.Now()}
	r.mu.Lock()
	if len(r.conflicts) == maxConflicts {
		r.conflicts = slices.Delete(r.conflicts, 0, 1)
	}
	r.conflicts = append(r.conflicts, c)
	r.mu.Unlock()
	if !r.logLimit.allow(c.ID + c.Holder + c.Claimant) {
		return
	}
	r.log.Warn("two servers have one id: one was killed a moment ago and came back elsewhere, or its data directory was copied", "id", c.ID, "holder", c.Holder, "claimant", c.Claimant)
}

// NodeMeta is what this member says of itself.
func (r *membership) NodeMeta(int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.encoded
}

// NotifyMsg takes messages of members; there are none.
func (r *membership) NotifyMsg([]byte) {}

// GetBroadcasts is what to spread beside rumours of members: nothing.
func (r *membership) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState is what to exchange in full beside members: nothing.
func (r *membership) LocalState(bool) []byte { return nil }

// MergeRemoteState takes what others exchange in full.
func (r *membership) MergeRemoteState([]byte, bool) {}
