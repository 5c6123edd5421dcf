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

// membership holds the members of the pool and decides about admission. memberlist calls it
// while it holds its own locks, so it must not call memberlist.
type membership struct {
	id  string
	log interface {
		Warn(msg string, args ...any)
		Info(msg string, args ...any)
	}
	events chan Event

	mu      sync.Mutex
	tags    Tags
	encoded []byte
	members map[string]Member
	foreign map[string]foreignMember // members of another cluster, by ID
	refusal error                    // reason why the last join was rejected

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
	encoded, _ := cfg.Tags.encode() // Validate has checked the encoding
	return &membership{
		id: cfg.ID, log: cfg.log(), tags: cfg.Tags, encoded: encoded,
		members: map[string]Member{}, foreign: map[string]foreignMember{}, events: make(chan Event, 256),
	}
}

// setTags replaces the published tags.
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

// markLeaving sets the Leaving tag.
func (r *membership) markLeaving() error {
	r.mu.Lock()
	t := r.tags
	r.mu.Unlock()
	t.Leaving = true
	return r.setTags(t)
}

// list returns the listed members, ascending by ID.
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

// expire removes members that left or failed longer than after ago.
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

// remove removes a member that is not alive.
func (r *membership) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.members[id].Status != Alive {
		delete(r.members, id)
		delete(r.foreign, id)
	}
}

// popRefusal returns and clears the reason why the last join was rejected.
func (r *membership) popRefusal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.refusal
	r.refusal = nil
	return err
}

// NotifyJoin records a member that is alive.
func (r *membership) NotifyJoin(n *memberlist.Node) { r.update(n, Alive) }

// NotifyUpdate records a changed address or changed tags.
func (r *membership) NotifyUpdate(n *memberlist.Node) { r.update(n, Alive) }

// NotifyLeave records a member that left, stopped or failed.
func (r *membership) NotifyLeave(n *memberlist.Node) {
	m, err := memberOf(n)
	if err == nil && m.Tags.Leaving {
		r.update(n, Left)
		return
	}
	if n.Name != r.id { // otherwise this member itself stops
		r.update(n, Failed)
	}
}

// update stores the state of a member and emits an event if the member is listed.
func (r *membership) update(n *memberlist.Node, status Status) {
	m, err := memberOf(n)
	if err != nil { // NotifyAlive admits no member with invalid tags
		r.log.Warn("ignored a member", "member", n.Name, "err", err)
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
		delete(r.foreign, m.ID) // NotifyAlive has checked its tags
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

// emit sends an event, or drops it if the channel is full.
func (r *membership) emit(e Event) {
	select {
	case r.events <- e:
	default:
	}
}

// NotifyMerge checks all members known to the other side of a join. If one of them is not
// admissible, two pools would merge, so the join is rejected.
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

// logRefusal logs a rejected member, each reason at most once per logInterval.
func (r *membership) logRefusal(err error) {
	if err != nil && r.logLimit.allow(err.Error()) {
		r.log.Warn("rejected a member", "err", err)
	}
}

// NotifyAlive checks one member reported by gossip.
func (r *membership) NotifyAlive(n *memberlist.Node) error {
	if n.Name == r.id {
		return nil
	}
	err := r.admit(n)
	r.logRefusal(err)
	return err
}

// admit returns an error if a member must not be in the pool.
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
		return fmt.Errorf("member %s at %s belongs to cluster %s, this server to %s: change the pool name or the seeds of one of them", m.ID, m.Addr, theirs, r.tags.ClusterID)
	}
	if r.tags.Newest != 0 && m.Tags.Newest != 0 && (m.Tags.Oldest > r.tags.Newest || m.Tags.Newest < r.tags.Oldest) {
		return fmt.Errorf("member %s at %s (build %s) supports log versions %d to %d, this server %d to %d: upgrade one release at a time",
			m.ID, m.Addr, m.Tags.Build, m.Tags.Oldest, m.Tags.Newest, r.tags.Oldest, r.tags.Newest)
	}
	here := n.State == memberlist.StateAlive || n.State == memberlist.StateSuspect
	if held, known := r.members[m.ID]; m.ID == r.id && here && known && held.Status == Alive && held.Addr != m.Addr {
		return &duplicateIDError{m}
	}
	return nil
}

// A duplicateIDError means that the pool has this server's ID at another address.
type duplicateIDError struct{ Holder Member }

func (e *duplicateIDError) Error() string {
	return fmt.Sprintf("ID %s is also used by a server at %s: either this server was killed there and is admitted once that is detected, or its data directory was copied", e.Holder.ID, e.Holder.Addr)
}

// NotifyConflict logs a member that claims the ID of another.
func (r *membership) NotifyConflict(holder, claimant *memberlist.Node) {
	at := func(n *memberlist.Node) string { return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port))) }
	if !r.logLimit.allow(holder.Name + at(holder) + at(claimant)) {
		return
	}
	r.log.Warn("two servers use the same ID: one was killed and restarted at another address, or its data directory was copied", "id", holder.Name, "holder", at(holder), "claimant", at(claimant))
}

// NodeMeta returns the encoded tags.
func (r *membership) NodeMeta(int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.encoded
}

// NotifyMsg does nothing: the pool sends no user messages.
func (r *membership) NotifyMsg([]byte) {}

// GetBroadcasts returns nil: the pool sends no user messages.
func (r *membership) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nil: members exchange no further state.
func (r *membership) LocalState(bool) []byte { return nil }

// MergeRemoteState does nothing: members exchange no further state.
func (r *membership) MergeRemoteState([]byte, bool) {}
