package broker

import "time"

// recentUnblocks remembers at which index a node, class or cluster last changed. A
// worker computes on a snapshot for a while, and a change in that time cannot wake
// its evaluation, which is not blocked yet. When it blocks, the recent changes
// determine what it missed.
//
// Invariants: a location is listed once; the list ascends by index and by time; the
// index of every location that is not listed is at or below floor.
type recentUnblocks struct {
	byLocation map[location]*recentUnblock
	head, tail *recentUnblock
	floor      uint64 // up to this index, any location may have changed
}

type recentUnblock struct {
	location
	index      uint64
	at         int64
	prev, next *recentUnblock
}

func newRecentUnblocks() recentUnblocks {
	return recentUnblocks{byLocation: make(map[location]*recentUnblock)}
}

// add records a change. An index that arrives late counts as the newest: too new an
// index unblocks an evaluation in vain, too old an index leaves one blocked.
func (s *recentUnblocks) add(p location, index uint64, now int64) {
	if s.tail != nil {
		index = max(index, s.tail.index)
	}
	x := s.byLocation[p]
	if x == nil {
		x = &recentUnblock{location: p}
		s.byLocation[p] = x
	} else {
		s.unlink(x)
	}
	x.index, x.at = index, now
	x.prev, x.next = s.tail, nil
	if s.tail == nil {
		s.head = x
	} else {
		s.tail.next = x
	}
	s.tail = x
}

// raiseFloor records that every location may have changed.
func (s *recentUnblocks) raiseFloor(index uint64) { s.floor = max(s.floor, index) }

// prune drops changes that are older than the retention. The floor takes their
// place, so an evaluation with a longer computation is unblocked in vain rather
// than never.
func (s *recentUnblocks) prune(now int64, memory time.Duration) {
	for x := s.head; x != nil && now-x.at > int64(memory); x = s.head {
		s.floor = max(s.floor, x.index)
		s.unlink(x)
		delete(s.byLocation, x.location)
	}
}

func (s *recentUnblocks) unlink(x *recentUnblock) {
	if x.prev == nil {
		s.head = x.next
	} else {
		x.prev.next = x.next
	}
	if x.next == nil {
		s.tail = x.prev
	} else {
		x.next.prev = x.prev
	}
}

// missedBy returns the newest change after the record's snapshot that it waits for;
// it returns false if there is none.
func (s *recentUnblocks) missedBy(r *record, classes *classNumbers, filter UnblockFilter) (uint64, bool) {
	for x := s.tail; x != nil && x.index > max(r.seen, s.floor); x = x.prev {
		if r.waitsFor(x.location, classes.find(x.class)) && x.passes(r, filter) {
			return x.index, true
		}
	}
	return s.floor, r.seen < s.floor
}
