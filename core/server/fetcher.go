package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/rpc"
)

// errLeads means that this server leads now: its workers look here.
var errLeads = errors.New("this server leads")

const (
	// lookForLeader is how often a call that waits at a leader looks whether another
	// one leads.
	lookForLeader = 200 * time.Millisecond
	// fetchFirst and fetchLast bound the wait after a failed call, which doubles.
	fetchFirst, fetchLast = 50 * time.Millisecond, 2 * time.Second
)

// fetcher gets work from the leader for this server's workers. One call waits there
// for all of them: it brings as many evaluations as workers waited when it was
// made, and who comes meanwhile is in the next.
type fetcher struct {
	s *Server

	mu      sync.Mutex
	waiting []*seat // first come first
	need    uint64  // index that this server's state must reach before it gets more
	needOf  string  // the leader whose work that was
	busy    bool    // somebody fetches
	ctx     context.Context
	group   sync.WaitGroup
}

// seat is a worker that waits.
type seat struct{ got chan fetched } // one slot

type fetched struct {
	d   broker.Delivery
	err error
}

// begin says how long may be fetched; wait waits for the end of it.
func (f *fetcher) begin(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx = ctx
}

func (f *fetcher) wait() {
	f.mu.Lock()
	f.ctx = nil
	f.mu.Unlock()
	f.group.Wait()
}

// dequeue waits for an evaluation from the leader.
func (f *fetcher) dequeue(ctx context.Context) (broker.Delivery, error) {
	w := &seat{got: make(chan fetched, 1)}
	f.mu.Lock()
	if f.ctx == nil {
		f.mu.Unlock()
		return broker.Delivery{}, context.Canceled
	}
	f.waiting = append(f.waiting, w)
	if !f.busy {
		f.busy = true
		inner := f.ctx
		f.group.Go(func() { f.run(inner) })
	}
	f.mu.Unlock()
	select {
	case got := <-w.got:
		return got.d, got.err
	case <-ctx.Done():
	}
	if f.rise(w) {
		return broker.Delivery{}, ctx.Err()
	}
	got := <-w.got // a delivery that crosses the end is taken, and worked on
	return got.d, got.err
}

// rise takes a worker off the list, unless it was served.
func (f *fetcher) rise(w *seat) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.waiting, w)
	if i < 0 {
		return false
	}
	f.waiting = slices.Delete(f.waiting, i, i+1)
	return true
}

// run fetches until nobody waits.
func (f *fetcher) run(ctx context.Context) {
	pauseFor := time.Duration(0)
	for {
		most, ok := f.wanted()
		if !ok {
			return
		}
		list, err := f.fetch(ctx, most)
		switch {
		case ctx.Err() != nil:
			f.fail(ctx.Err())
		case errors.Is(err, errLeads):
			f.fail(err)
		case err != nil:
			pauseFor = min(max(2*pauseFor, fetchFirst), fetchLast)
			clock.Sleep(ctx, f.s.cfg.Clock, pauseFor)
		default:
			pauseFor = 0
			f.serve(list)
		}
	}
}

// wanted is how many workers wait; none ends the run.
func (f *fetcher) wanted() (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = len(f.waiting) > 0
	return len(f.waiting), f.busy
}

// fail sends everybody home.
func (f *fetcher) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.waiting {
		w.got <- fetched{err: err}
	}
	f.waiting = nil
}

// serve hands deliveries to those who wait, and the rest back.
func (f *fetcher) serve(list []broker.Delivery) {
	f.mu.Lock()
	n := min(len(list), len(f.waiting))
	for i, w := range f.waiting[:n] {
		w.got <- fetched{d: list[i]}
	}
	f.waiting = f.waiting[n:]
	f.mu.Unlock()
	for _, d := range list[n:] {
		if err := (office{f.s}).Nack(d.Eval.ID, d.Token); err != nil {
			f.s.logger.Debug("evaluation not given back; its lease ends", "eval_id", d.Eval.ID, "err", err)
		}
	}
}

// fetch waits at the leader. It comes back when another server leads.
func (f *fetcher) fetch(ctx context.Context, most int) ([]broker.Delivery, error) {
	leader, here, err := office{f.s}.leader()
	switch {
	case here:
		return nil, errLeads
	case err != nil:
		return nil, err
	}
	if err := f.catchUp(ctx, leader); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := f.whileLeads(leader, cancel)
	defer stop()
	poll := f.s.cfg.Pool.Poll
	// Not all servers' calls end at the same time.
	wait := poll/2 + time.Duration(f.s.cfg.Random(int64(poll/2)))
	d, err := f.s.cfg.Peers.Dequeue(ctx, leader, most, wait)
	if err != nil {
		return nil, err
	}
	return f.s.unpackDeliveries(d)
}

// late notes that work came to nothing because this server is behind. Nothing is fetched
// until it has caught up: with a disk that is full, say, it follows the leader for hours and
// gets nothing of the log, and whatever it took would wait here for others to do it.
func (f *fetcher) late(index uint64) {
	leader, _ := f.s.cfg.Log.Leader()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.needOf != leader {
		f.need, f.needOf = 0, leader
	}
	f.need = max(f.need, index)
}

// catchUp waits for a while until this server is no longer behind. What another leader
// wanted of it is no matter.
func (f *fetcher) catchUp(ctx context.Context, leader string) error {
	f.mu.Lock()
	need, of := f.need, f.needOf
	f.mu.Unlock()
	if of != leader {
		return nil
	}
	_, err := patient{store: f.s.cfg.Store}.WaitIndex(ctx, need)
	return err
}

// whileLeads cancels when a server does not lead any more, as far as this one
// knows: a leader that was cut off cannot say so itself.
func (f *fetcher) whileLeads(leader string, cancel func()) (stop func()) {
	var mu sync.Mutex
	over := false
	var timer interface{ Stop() bool }
	var look func()
	look = func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if id, here, err := (office{f.s}).leader(); here || err != nil || id != leader {
			cancel()
			return
		}
		timer = f.s.cfg.Clock.AfterFunc(lookForLeader, look)
	}
	mu.Lock()
	timer = f.s.cfg.Clock.AfterFunc(lookForLeader, look)
	mu.Unlock()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}

func (s *Server) packDeliveries(list []broker.Delivery, term uint64) *rpc.Deliveries {
	out := &rpc.Deliveries{Term: term}
	evals := make([]*model.Evaluation, len(list))
	for i, d := range list {
		evals[i] = d.Eval
		out.List = append(out.List, rpc.Delivery{
			Token: uint64(d.Token), WaitIndex: d.WaitIndex, Attempt: d.Attempt, Trace: s.traces.TraceParent(d.Eval.ID),
		})
	}
	out.Evals = codec.EncodeEvals(evals)
	return out
}

func (s *Server) unpackDeliveries(d *rpc.Deliveries) ([]broker.Delivery, error) {
	if len(d.List) == 0 {
		return nil, nil
	}
	evals, err := codec.DecodeEvals(d.Evals)
	if err != nil {
		return nil, err
	}
	if len(evals) != len(d.List) {
		return nil, fmt.Errorf("%d evaluations come with %d deliveries", len(evals), len(d.List))
	}
	list := make([]broker.Delivery, len(evals))
	for i, one := range d.List {
		list[i] = broker.Delivery{Eval: evals[i], Token: broker.Token(one.Token), WaitIndex: one.WaitIndex, Attempt: one.Attempt}
		s.traces.Adopt(evals[i].ID, one.Trace)
	}
	return list, nil
}
