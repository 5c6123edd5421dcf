package replication

// leadership passes on when this server becomes the leader and when it stops
// being it.
//
// Raft says so on a channel that it waits on, so somebody must always listen;
// its other channel holds the newest word alone, and who leads, loses it and
// leads again while the server is busy would be told nothing, and go on with
// what it knew in the earlier term. Here a pair of false and true is kept
// until the server takes it. Only a term that came and went before anybody
// heard of it is left out.
type leadership struct {
	told    bool
	pending []bool // alternating; at most a false and a true
}

func (l *leadership) push(leads bool) {
	last := l.told
	if n := len(l.pending); n > 0 {
		last = l.pending[n-1]
	}
	if leads == last {
		return
	}
	l.pending = append(l.pending, leads)
	switch {
	case len(l.pending) == 3:
		l.pending = l.pending[:1]
	case len(l.pending) == 2 && !l.told:
		l.pending = nil
	}
}

func (l *leadership) pop() {
	l.told, l.pending = l.pending[0], l.pending[1:]
}

// run passes on until stop is closed; then it closes out. From down on nobody
// leads: Raft does not insist on saying so when it shuts down.
func (l *leadership) run(in <-chan bool, out chan<- bool, down, stop <-chan struct{}) {
	defer close(out)
	for {
		var to chan<- bool
		var next bool
		if len(l.pending) > 0 {
			to, next = out, l.pending[0]
		}
		select {
		case leads := <-in:
			l.push(leads)
		case <-down:
			l.push(false)
			in, down = nil, nil
		case to <- next:
			l.pop()
		case <-stop:
			return
		}
	}
}
