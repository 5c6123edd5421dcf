package raftshim

// A leadershipQueue forwards changes of leadership to one reader.
//
// Raft sends them on NotifyCh, which blocks Raft unless it is read at all times.
// Its other channel, LeaderCh, holds the latest value only: a reader that is busy
// while leadership is lost and won again receives nothing, and continues with
// the state of the earlier term. This queue retains one pair of false and
// true until the reader receives it. It drops a term only if the reader never
// received its start.
type leadershipQueue struct {
	delivered bool
	// Invariant: pending alternates, starts with !delivered, and holds at most
	// false and true.
	pending []bool
}

func (q *leadershipQueue) push(isLeader bool) {
	last := q.delivered
	if n := len(q.pending); n > 0 {
		last = q.pending[n-1]
	}
	if isLeader == last {
		return
	}
	q.pending = append(q.pending, isLeader)
	switch {
	case len(q.pending) == 3: // false, true, false: the term between is dropped
		q.pending = q.pending[:1]
	case len(q.pending) == 2 && !q.delivered: // true, false: same
		q.pending = nil
	}
}

func (q *leadershipQueue) pop() {
	q.delivered, q.pending = q.pending[0], q.pending[1:]
}

// run forwards changes from in to out until stop is closed, then closes out. A
// closed down counts as a loss of leadership, since Raft does not always send one
// when it shuts down.
func (q *leadershipQueue) run(in <-chan bool, out chan<- bool, down, stop <-chan struct{}) {
	defer close(out)
	for {
		var to chan<- bool // nil while there is nothing to deliver
		var next bool
		if len(q.pending) > 0 {
			to, next = out, q.pending[0]
		}
		select {
		case isLeader := <-in:
			q.push(isLeader)
		case <-down:
			q.push(false)
			in, down = nil, nil
		case to <- next:
			q.pop()
		case <-stop:
			return
		}
	}
}
