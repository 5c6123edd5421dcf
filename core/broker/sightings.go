package broker

import "time"

// sightings remembers where there was room last, and at which index. A worker
// computes on a snapshot for a while; room that comes up meanwhile wakes nobody,
// since the evaluation is not blocked yet. When it blocks, these tell what it
// missed.
//
// Invariants: a place is listed once; the list ascends by index and by time;
// what is not listed lies at or below floor.
type sightings struct {
	places     map[place]*sighting
	head, tail *sighting
	floor      uint64 // at or before this any place may have had room
}

type sighting struct {
	place
	index      uint64
	at         int64
	prev, next *sighting
}

func newSightings() sightings { return sightings{places: make(map[place]*sighting)} }

// note records room at a place. An index that comes late counts as the newest:
// too new wakes an evaluation in vain, too old leaves one asleep.
func (s *sightings) note(p place, index uint64, now int64) {
	if s.tail != nil {
		index = max(index, s.tail.index)
	}
	x := s.places[p]
	if x == nil {
		x = &sighting{place: p}
		s.places[p] = x
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

// everywhere records that there may have been room at every place.
func (s *sightings) everywhere(index uint64) { s.floor = max(s.floor, index) }

// prune forgets what is older than memory. The floor takes its place, so an
// evaluation that was computed for so long wakes in vain rather than never.
func (s *sightings) prune(now int64, memory time.Duration) {
	for x := s.head; x != nil && now-x.at > int64(memory); x = s.head {
		s.floor = max(s.floor, x.index)
		s.unlink(x)
		delete(s.places, x.place)
	}
}

func (s *sightings) unlink(x *sighting) {
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

// missedBy is the newest change after the record's snapshot that it waits for.
func (s *sightings) missedBy(r *record, classes *classNumbers, filter UnblockFilter) (uint64, bool) {
	for x := s.tail; x != nil && x.index > max(r.seen, s.floor); x = x.prev {
		if r.waitsFor(x.place, classes.find(x.class)) && x.passes(r.eval, filter) {
			return x.index, true
		}
	}
	return s.floor, r.seen < s.floor
}
