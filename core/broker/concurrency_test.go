package broker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func realBroker(t testing.TB, change ...func(*broker.Config)) (*broker.Broker, *broker.Blocked) {
	t.Helper()
	cfg := broker.Config{Rand: rand.New(rand.NewPCG(1, 1))}
	for _, c := range change {
		c(&cfg)
	}
	b, err := broker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	blocked := broker.NewBlocked(b)
	b.Enable()
	return b, blocked
}

func TestDequeue_WaitsAndIsServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := realBroker(t)
		got := make(chan string, 3)
		wait := func(name string, types ...model.JobType) {
			go func() {
				d, err := b.Dequeue(t.Context(), types, 0)
				if err != nil {
					t.Error(err)
					return
				}
				got <- name + ":" + d.Eval.ID
			}()
			synctest.Wait()
		}
		wait("batch", model.JobBatch)
		wait("first")
		wait("second")
		// One call: the best goes to the first caller, in any order of evaluations.
		b.Enqueue(eval("low", 10, 1), eval("high", 90, 2))
		synctest.Wait()
		seen := map[string]bool{<-got: true, <-got: true}
		if !seen["first:high"] || !seen["second:low"] {
			t.Errorf("delivered %v", seen)
		}
		if s := b.Stats(); s.Waiters != 1 {
			t.Errorf("%d wait", s.Waiters)
		}
		b.Enqueue(with(eval("b", 1, 3), func(e *model.Evaluation) { e.Type = model.JobBatch }))
		if s := <-got; s != "batch:b" {
			t.Errorf("delivered %s", s)
		}
		b.Disable()
	})
}

func TestDequeue_EndsByTimeoutContextAndDisable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := realBroker(t)
		start := time.Now()
		if _, err := b.Dequeue(t.Context(), nil, 500*time.Millisecond); !errors.Is(err, broker.ErrNoEvaluation) {
			t.Errorf("after the timeout: %v", err)
		}
		if d := time.Since(start); d != 500*time.Millisecond {
			t.Errorf("waited %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.DequeueBatch(ctx, nil, 8, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the context: %v", err)
		}
		if _, err := b.Dequeue(ctx, nil, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a dead context: %v", err)
		}
		time.AfterFunc(time.Second, b.Disable)
		if _, err := b.Dequeue(t.Context(), nil, time.Hour); !errors.Is(err, broker.ErrDisabled) {
			t.Errorf("after disable: %v", err)
		}
		if _, err := b.Dequeue(t.Context(), nil, time.Hour); !errors.Is(err, broker.ErrDisabled) {
			t.Errorf("on a disabled broker: %v", err)
		}
	})
}

func TestDequeue_WaitsOutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := realBroker(t)
		b.Enqueue(eval("a", 50, 1))
		b.Pause()
		time.AfterFunc(time.Minute, b.Resume)
		start := time.Now()
		d, err := b.Dequeue(t.Context(), nil, time.Hour)
		if err != nil || d.Eval.ID != "a" || time.Since(start) != time.Minute {
			t.Errorf("%v %v after %v", d, err, time.Since(start))
		}
		b.Disable()
	})
}

func TestDequeueBatch_ReturnsAllReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := realBroker(t)
		for i := range 5 {
			b.Enqueue(eval(fmt.Sprint(i), int32(i), uint64(i)))
		}
		for _, want := range []int{3, 2} {
			ds, err := b.DequeueBatch(t.Context(), nil, 3, 0)
			if err != nil || len(ds) != want {
				t.Fatalf("%d deliveries, %v; want %d", len(ds), err, want)
			}
		}
		b.Disable()
	})
}

// On the real clock, as compressed by synctest: a lease that runs out wakes a
// waiting worker after the delay.
func TestLease_ExpiresWhileAnotherWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := realBroker(t)
		b.Enqueue(eval("a", 50, 1))
		start := time.Now()
		first, _ := b.TryDequeue(nil)
		second, err := b.Dequeue(t.Context(), nil, 0)
		if err != nil || second.Attempt != 2 {
			t.Fatalf("%+v %v", second, err)
		}
		if d := time.Since(start); d != 61*time.Second {
			t.Errorf("came again after %v, want 60 s lease and 1 s delay", d)
		}
		if first.Token == second.Token {
			t.Error("two deliveries have one token")
		}
		if err := b.Renew("a", first.Token); !errors.Is(err, broker.ErrNackTimeout) {
			t.Errorf("renewing the old lease: %v", err)
		}
		if err := b.Renew("a", first.Token+second.Token); !errors.Is(err, broker.ErrTokenMismatch) {
			t.Errorf("renewing with a made-up token: %v", err)
		}
		b.Disable()
	})
}

func TestWakeup_NotifiesTheReaper(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(evalOf("j", "a", 50, 1), evalOf("j", "b", 50, 2), evalOf("j", "c", 50, 2))
	select {
	case <-f.Wakeup():
		t.Fatal("nothing is cancelable yet")
	default:
	}
	f.ack(t, f.take(t), 2)
	<-f.Wakeup()
	cs := f.PopCancelable(1)
	<-f.Wakeup() // one is left
	f.ReturnCancelable(cs)
	<-f.Wakeup()
	if got := cancelled(f.PopCancelable(0)); got != "c<-a b<-a" {
		t.Errorf("cancelable after giving back: %q", got)
	}
	f.Enqueue(eval("x", 50, 3))
	for range 3 {
		f.nack(t, f.take(t))
		f.advance(time.Minute)
	}
	failed := f.PopFailed(0)
	f.ReturnFailed(failed)
	if got := ids(f.PopFailed(0)); got != "x" {
		t.Errorf("failed after giving back: %q", got)
	}
}

// Workers that ack, nack, stall and block, writers, a reaper, and an operator that
// pauses and reads statistics, all at once. Nothing may be lost: every evaluation
// is acked, covered by one that was, or failed.
func TestHammer(t *testing.T) {
	t.Parallel()
	b, blocked := realBroker(t, func(c *broker.Config) {
		c.FirstNackDelay, c.NackDelay, c.DeliveryLimit = time.Microsecond, time.Microsecond, 1000
	})
	total := soak.Count(4_000, 100_000)
	var index atomic.Uint64
	var ended sync.Map // id -> true, or the id of the one that covered it
	var left atomic.Int64
	left.Store(int64(total))
	ctx, cancel := context.WithCancel(t.Context())
	end := func(id string, by any) {
		if _, twice := ended.LoadOrStore(id, by); !twice && left.Add(-1) == 0 {
			cancel()
		}
	}

	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i := w; i < total; i += 2 {
				ix := index.Add(1)
				ev := evalOf(fmt.Sprint("j", i%97), fmt.Sprint("e", i), int32(i%7), ix)
				ev.Type = model.JobType(i % model.JobTypes)
				b.Enqueue(ev)
				if i%5 == 0 {
					b.Enqueue(with(ev, func(e *model.Evaluation) { e.Priority = 9 }))
				}
			}
		})
	}
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for {
				ds, err := b.DequeueBatch(ctx, nil, 1+r.IntN(4), time.Millisecond)
				switch {
				case errors.Is(err, context.Canceled):
					return
				case errors.Is(err, broker.ErrNoEvaluation): // all that is left may be blocked
					blocked.UnblockAll(index.Add(1))
				}
				for _, d := range ds {
					work(t, b, blocked, &index, r, d, end)
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.Wakeup():
			}
			for cs := b.PopCancelable(0); cs != nil; cs = b.PopCancelable(0) {
				for _, c := range cs {
					end(c.Eval.ID, c.SupersededBy)
				}
			}
			for _, c := range blocked.PopDuplicates(0) {
				end(c.Eval.ID, c.SupersededBy)
			}
			for _, ev := range b.PopFailed(0) {
				end(ev.ID, true)
			}
			b.Pause()
			s := b.Stats()
			if c := s.Total(); c.Unacked > 97 {
				t.Errorf("%d in flight of 97 jobs", c.Unacked)
			}
			b.Resume()
		}
	})
	wg.Wait()
	s := b.Stats()
	if c := s.Total(); c != (broker.Counts{Blocked: c.Blocked, Delayed: c.Delayed}) {
		t.Errorf("left behind: %+v", c)
	}
	b.Disable()
	for i := range total {
		id := any(fmt.Sprint("e", i))
		for hops := 0; id != true; hops++ {
			if hops > total {
				t.Fatalf("e%d: covered in a circle", i)
			}
			next, ok := ended.Load(id)
			if !ok {
				t.Fatalf("e%d ends at %v, which did not end", i, id)
			}
			id = next
		}
	}
}

// work settles a delivery one way or another.
func work(t *testing.T, b *broker.Broker, blocked *broker.Blocked, index *atomic.Uint64, r *rand.Rand, d broker.Delivery, end func(string, any)) {
	id := d.Eval.ID
	switch r.IntN(6) {
	case 0:
		if err := b.Nack(id, d.Token); err != nil {
			t.Errorf("nack %s: %v", id, err)
		}
		return
	case 1: // finds no room and blocks itself
		if err := b.PauseTimer(id, d.Token); err != nil {
			t.Errorf("pause %s: %v", id, err)
		}
		snapshot := index.Load()
		blocked.Block(with(d.Eval, func(e *model.Evaluation) {
			e.Status, e.SnapshotIndex, e.ModifyIndex = model.EvalBlocked, snapshot, index.Add(1)
		}), nil)
		blocked.Unblock(uint64(r.IntN(2)), "n", index.Add(1), nil)
		if err := b.Ack(id, d.Token, snapshot); err != nil {
			t.Errorf("ack %s: %v", id, err)
		}
		return
	case 2:
		if err := b.Renew(id, d.Token); err != nil {
			t.Errorf("renew %s: %v", id, err)
		}
	}
	snapshot := index.Load()
	if err := b.Ack(id, d.Token, snapshot); err != nil {
		t.Errorf("ack %s: %v", id, err)
		return
	}
	// A copy that blocked may be in the broker yet; it ends by itself.
	end(id, true)
}

// If a newer evaluation was cancelled in favor of this one, it stands for the newer
// change. One that leaves its backoff and is acked on a snapshot between the two
// must not cover it.
func TestAck_DoesNotCoverNewerChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(evalOf("j", "old", 1, 1), evalOf("j", "nacked", 2, 2))
	f.nack(t, f.take(t))
	f.Enqueue(evalOf("j", "stands", 1, 3), evalOf("j", "newest", 0, 4))
	f.ack(t, f.take(t), 1) // old; now stands stands for newest
	f.advance(time.Second)
	d := f.take(t)
	if d.Eval.ID != "nacked" {
		t.Fatalf("took %s", d.Eval.ID)
	}
	f.ack(t, d, 3)
	f.wantOrder(t, "stands")
}

// No change is lost: an evaluation ends only by an ack on a snapshot that has its
// change, by being covered by one that ended so, or by failing.
func TestNoChangeIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t)
		index := uint64(0)
		made := map[string]uint64{}  // id -> its change
		acked := map[string]uint64{} // id -> snapshot
		covered := map[string]string{}
		failed := map[string]bool{}
		reap := func() {
			for _, c := range f.PopCancelable(0) {
				covered[c.Eval.ID] = c.SupersededBy
			}
			for _, ev := range f.PopFailed(0) {
				failed[ev.ID] = true
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"make": func(rt *rapid.T) {
				index++
				id := fmt.Sprint("e", index)
				made[id] = index
				f.Enqueue(evalOf(fmt.Sprint("j", rapid.IntRange(0, 2).Draw(rt, "job")), id, rapid.Int32Range(0, 3).Draw(rt, "priority"), index))
			},
			"work": func(rt *rapid.T) {
				d, ok := f.TryDequeue(nil)
				if !ok {
					return
				}
				switch rapid.IntRange(0, 3).Draw(rt, "fate") {
				case 0:
					f.nack(rt, d)
				case 1: // stalls
				default:
					snapshot := rapid.Uint64Range(d.Eval.ModifyIndex, index).Draw(rt, "snapshot")
					if err := f.Ack(d.Eval.ID, d.Token, snapshot); err == nil {
						acked[d.Eval.ID] = snapshot
					}
				}
			},
			"reap":    func(*rapid.T) { reap() },
			"advance": func(*rapid.T) { f.advance(30 * time.Second) },
		})
		for range 400 {
			if d, ok := f.TryDequeue(nil); ok {
				f.ack(rt, d, d.WaitIndex)
				acked[d.Eval.ID] = d.WaitIndex
			}
			f.advance(10 * time.Second)
			reap()
		}
		for id, change := range made {
			by := id
			for covered[by] != "" {
				by = covered[by]
			}
			if snapshot, ok := acked[by]; !failed[by] && (!ok || snapshot < change) {
				rt.Fatalf("%s (change %d) ended by %s, acked on %d (%v)", id, change, by, snapshot, ok)
			}
		}
	})
}
