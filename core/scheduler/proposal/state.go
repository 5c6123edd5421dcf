package proposal

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// State is the cluster as it will be once the plan so far is committed.
type State struct {
	// Base is the snapshot that the evaluation is planned against.
	Base *state.Snapshot
	now  int64

	snap *state.Snapshot
	// draft made snap and may still be written to. If it is nil, snap never changes.
	draft      *state.Txn
	jobStopped bool // see JobStopped
}

// NewState returns a State that equals base at a time in Unix nanoseconds.
func NewState(base *state.Snapshot, now int64) *State {
	return &State{Base: base, now: now, snap: base}
}

// Snapshot returns the proposed state. It is valid until the next change; call
// Freeze for a snapshot that outlives it.
func (s *State) Snapshot() *state.Snapshot { return s.snap }

// Changed reports whether anything was proposed on top of Base.
func (s *State) Changed() bool { return s.snap != s.Base }

// JobStopped reports whether allocations of the evaluation's own job were
// stopped in the proposed state, so that those in Base no longer describe it.
func (s *State) JobStopped() bool { return s.jobStopped }

// SetJobStopped makes JobStopped return true.
func (s *State) SetJobStopped() { s.jobStopped = true }

// Apply proposes placements, and removals with the given desired status. The
// resulting snapshot may be retained.
func (s *State) Apply(place, remove []*model.Allocation, desired model.DesiredStatus) {
	s.jobStopped = s.jobStopped || desired == model.DesiredStop
	s.draft = s.snap.Fork(s.snap.Index() + 1)
	s.write(place, remove, desired)
	s.snap, s.draft = s.draft.Snapshot(), nil
}

// write writes placements and removals to the draft.
func (s *State) write(place, remove []*model.Allocation, desired model.DesiredStatus) {
	for _, a := range remove {
		removed := *a
		removed.Desired, removed.EndTime = desired, s.now
		s.draft.AllocWriter().Upsert(&removed)
	}
	for _, a := range place {
		placed := *a
		s.draft.AllocWriter().Upsert(&placed)
	}
}

// Place proposes one placement without evictions, which is the usual case.
// A fork per placement would copy the touched chunk every time, so consecutive
// placements share one transaction, and the snapshot is valid only until the
// next change.
func (s *State) Place(a *model.Allocation) {
	if s.draft == nil {
		s.draft = s.snap.Fork(s.snap.Index() + 1)
	}
	placed := *a
	s.draft.AllocWriter().Upsert(&placed)
	s.snap = s.draft.Draft()
}

// PlaceRetained proposes one placement and the eviction of its victims. Chunks of the resulting
// snapshot may be retained, as a search does, but the snapshot is valid only until the next
// change: a fork for each instance of a gang would copy parts of all tables.
func (s *State) PlaceRetained(a *model.Allocation, victims []*model.Allocation) {
	if s.draft == nil {
		s.draft = s.snap.Fork(s.snap.Index() + 1)
	}
	s.write([]*model.Allocation{a}, victims, model.DesiredEvict)
	s.snap = s.draft.NodeSnapshot()
}

// Freeze returns the proposed state as a snapshot that later changes do not affect.
func (s *State) Freeze() *state.Snapshot {
	s.draft = nil // without another write to the draft, its snapshot stays as it is
	return s.snap
}

// Restore returns to a snapshot that Freeze returned earlier.
func (s *State) Restore(snap *state.Snapshot) { s.snap, s.draft = snap, nil }

// A StateMark identifies a State to which Rollback can return.
type StateMark struct {
	snap       *state.Snapshot
	jobStopped bool
}

// Snapshot returns the proposed state at the mark.
func (m StateMark) Snapshot() *state.Snapshot { return m.snap }

// Mark returns the current state for Rollback.
func (s *State) Mark() StateMark { return StateMark{s.Freeze(), s.jobStopped} }

// Rollback discards every change made since the mark.
func (s *State) Rollback(m StateMark) {
	s.Restore(m.snap)
	s.jobStopped = m.jobStopped
}
