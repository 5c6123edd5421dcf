package extender

import "slices"

// An observedSet holds the keys of objects that are cached only because a request
// contained them, so that a server that is never fed does not grow without bound.
// The zero value is ready to use.
type observedSet struct {
	seq   uint64
	last  map[string]uint64 // by key: the number of the latest observation
	queue []observation     // in order; those that are not the latest of their key are obsolete
}

type observation struct {
	key string
	seq uint64
}

// Bounds of the objects that are cached from requests only. The object that was
// observed least recently is dropped.
const (
	maxObservedPods  = 20_000
	maxObservedNodes = 20_000
)

// add records an observation. If there are more than limit keys, it removes and
// returns the one that was observed least recently.
func (s *observedSet) add(k string, limit int) (oldest string, full bool) {
	if s.last == nil {
		s.last = map[string]uint64{}
	}
	s.seq++
	s.last[k] = s.seq
	s.queue = append(s.queue, observation{k, s.seq})
	if len(s.queue) > 2*limit {
		s.queue = slices.DeleteFunc(s.queue, s.isObsolete)
	}
	if len(s.last) <= limit {
		return "", false
	}
	for s.isObsolete(s.queue[0]) {
		s.queue = s.queue[1:]
	}
	oldest = s.queue[0].key
	s.remove(oldest)
	return oldest, true
}

func (s *observedSet) isObsolete(o observation) bool { return s.last[o.key] != o.seq }

// remove removes a key if it is present.
func (s *observedSet) remove(k string) { delete(s.last, k) }

func (s *observedSet) contains(k string) bool { return s.last[k] != 0 }
