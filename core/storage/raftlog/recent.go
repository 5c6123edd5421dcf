package raftlog

import (
	"cmp"

	"github.com/hashicorp/raft"
)

// recent caches the newest entries, which are read once per follower and once to be
// applied. raft.LogCache is not used because it hides that the log tracks the commit
// index. Log.mu guards it. Entries are shared with Raft and must not be changed.
type recent struct {
	ring  []*raft.Log // entry i at i mod len
	first uint64      // first and last cached index; first is 0 if the cache is empty
	last  uint64
	bytes int
	limit int
}

func newRecent(entries, bytes int) *recent {
	return &recent{ring: make([]*raft.Log, max(entries, 1)), limit: bytes}
}

// slot returns the place of an index in the ring, whether or not it is cached.
func (r *recent) slot(index uint64) **raft.Log { return &r.ring[index%uint64(len(r.ring))] }

// get returns the entry at index, or nil if it is not cached.
func (r *recent) get(index uint64) *raft.Log {
	if r.first == 0 || index < r.first || index > r.last {
		return nil
	}
	return *r.slot(index)
}

// add caches an entry. If it does not follow the last one, or is larger than the limit, the
// cache is emptied.
func (r *recent) add(l *raft.Log) {
	// Gaps are impossible in the ring, since positions follow from indexes.
	if r.first != 0 && l.Index != r.last+1 {
		r.reset()
	}
	size := entrySize(l)
	if size > r.limit {
		r.reset()
		return
	}
	for r.first != 0 && (r.last-r.first+1 >= uint64(len(r.ring)) || r.bytes+size > r.limit) {
		r.dropFirst()
	}
	r.first = cmp.Or(r.first, l.Index)
	r.last = l.Index
	r.bytes += size
	*r.slot(l.Index) = l
}

func (r *recent) dropFirst() {
	r.drop(r.first)
	if r.first++; r.first > r.last {
		r.first = 0
	}
}

// drop removes one entry from the ring. The caller adjusts first or last.
func (r *recent) drop(index uint64) {
	slot := r.slot(index)
	r.bytes -= entrySize(*slot)
	*slot = nil
}

// trim removes entries outside [first, last].
func (r *recent) trim(first, last uint64) {
	for r.first != 0 && r.first < first {
		r.dropFirst()
	}
	for r.first != 0 && r.last > last {
		r.drop(r.last)
		if r.last--; r.last < r.first {
			r.first = 0
		}
	}
}

// reset empties the cache and keeps its ring.
func (r *recent) reset() { r.trim(1, 0) }
