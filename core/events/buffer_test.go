package events_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(index uint64, topic events.Topic) events.Event {
	return events.Event{Index: index, Topic: topic}
}

// drain reads the available events without waiting.
func drain(t *testing.T, s *events.Subscription) (indexes []uint64, lost []events.Gap) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		b, err := s.Next(ctx)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			return indexes, lost
		}
		if b.Lost != nil {
			lost = append(lost, *b.Lost)
		}
		for _, e := range b.Events {
			indexes = append(indexes, e.Index)
		}
	}
}

func TestSubscription_ResumesByIndexAndPicksTopics(t *testing.T) {
	t.Parallel()
	b := events.NewBuffer(16)
	b.Publish(event(3, events.Job), event(3, events.Node), event(5, events.Job), event(9, events.Node))
	for _, c := range []struct {
		from   uint64
		filter events.Filter
		want   []uint64
	}{
		{1, nil, []uint64{3, 3, 5, 9}},
		{3, nil, []uint64{3, 3, 5, 9}},
		{4, nil, []uint64{5, 9}},
		{4, events.Filter{events.Node}, []uint64{9}},
		{10, nil, nil},
		{0, nil, nil}, // from now on
	} {
		got, lost := drain(t, b.Subscribe(c.from, c.filter))
		if len(got) != len(c.want) || len(lost) > 0 {
			t.Errorf("from %d, %v: read %v, lost %v, want %v", c.from, c.filter, got, lost, c.want)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("from %d: read %v, want %v", c.from, got, c.want)
			}
		}
	}
}

func TestSubscription_SlowReaderGetsTheGap(t *testing.T) {
	t.Parallel()
	b := events.NewBuffer(4)
	s := b.Subscribe(1, nil)
	for i := uint64(1); i <= 10; i++ {
		b.Publish(event(i, events.Job))
	}
	got, lost := drain(t, s)
	if len(lost) != 1 || lost[0] != (events.Gap{From: 1, To: 6}) {
		t.Errorf("lost %v, want 1 to 6", lost)
	}
	if len(got) != 4 || got[0] != 7 || got[3] != 10 {
		t.Errorf("read %v, want 7 to 10", got)
	}
	if _, lost := drain(t, b.Subscribe(5, nil)); len(lost) != 1 || lost[0] != (events.Gap{From: 5, To: 6}) {
		t.Errorf("one that begins too far back lost %v, want 5 to 6", lost)
	}
}

func TestBuffer_ResetIsAGapForEveryReader(t *testing.T) {
	t.Parallel()
	b := events.NewBuffer(4)
	b.Publish(event(1, events.Job))
	seen, behind := b.Subscribe(1, nil), b.Subscribe(1, nil)
	drain(t, seen)
	b.Reset(7)
	b.Publish(event(8, events.Job))
	for name, s := range map[string]*events.Subscription{"had seen all": seen, "had seen nothing": behind} {
		got, lost := drain(t, s)
		if len(lost) != 1 || lost[0].To != 7 || len(got) != 1 || got[0] != 8 {
			t.Errorf("%s: read %v, lost %v, want 8 and a gap to 7", name, got, lost)
		}
	}
}

func TestSubscription_WaitsAndEndsWithTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := events.NewBuffer(4)
		s := b.Subscribe(0, events.Filter{events.Node})
		var got []uint64
		var err error
		var done sync.WaitGroup
		done.Go(func() {
			for {
				var batch events.Batch
				if batch, err = s.Next(context.Background()); err != nil {
					return
				}
				for _, e := range batch.Events {
					got = append(got, e.Index)
				}
			}
		})
		for i := uint64(1); i <= 6; i++ {
			topic := events.Job
			if i%3 == 0 {
				topic = events.Node
			}
			b.Publish(event(i, topic))
			synctest.Wait()
		}
		b.Close()
		done.Wait()
		if !errors.Is(err, events.ErrClosed) || len(got) != 2 || got[0] != 3 || got[1] != 6 {
			t.Errorf("read %v, ended with %v", got, err)
		}
	})
}

// Each reader receives every event of its topics once and in order, or a gap that
// covers the events it did not receive.
func TestSubscription_ReportsEveryGap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := events.NewBuffer(rapid.IntRange(1, 6).Draw(rt, "capacity"))
		type reader struct {
			s    *events.Subscription
			from uint64
			told map[uint64]bool
			last uint64
		}
		var readers []*reader
		index := uint64(0)
		var all []uint64
		read := func(r *reader) {
			got, lost := drain(t, r.s)
			for _, g := range lost {
				for i := g.From; i <= g.To; i++ {
					r.told[i] = true
				}
			}
			for _, i := range got {
				if i < r.last {
					rt.Fatalf("read %d after %d", i, r.last)
				}
				r.last, r.told[i] = i, true
			}
			for _, i := range all {
				if i >= r.from && !r.told[i] {
					rt.Fatalf("a reader from %d was not informed of %d", r.from, i)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"publish": func(rt *rapid.T) {
				index += uint64(rapid.IntRange(0, 2).Draw(rt, "step"))
				if index == 0 {
					index = 1
				}
				all = append(all, index)
				b.Publish(event(index, events.Job))
			},
			"subscribe": func(rt *rapid.T) {
				from := uint64(rapid.IntRange(1, int(index)+2).Draw(rt, "from"))
				readers = append(readers, &reader{s: b.Subscribe(from, nil), from: from, told: map[uint64]bool{}})
			},
			"reset": func(rt *rapid.T) {
				index++
				b.Reset(index)
			},
			"read": func(rt *rapid.T) {
				if len(readers) > 0 {
					read(readers[rapid.IntRange(0, len(readers)-1).Draw(rt, "reader")])
				}
			},
		})
		for _, r := range readers {
			read(r)
		}
	})
}
