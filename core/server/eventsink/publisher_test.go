package eventsink

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/cede-scheduler/cede/core/replication"
)

// A reader that has seen the result of an entry in the state finds its decisions. It does not
// wait for entries that were applied before the publisher was made, or when it has ended.
func TestDecisions_WaitForEntriesOfTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index := uint64(3)
		p := New(Config{StateIndex: func() uint64 { return index }})
		read := func() <-chan error {
			done := make(chan error, 1)
			go func() {
				_, err := p.Decisions(t.Context(), DecisionQuery{})
				done <- err
			}()
			return done
		}
		if err := <-read(); err != nil {
			t.Fatal(err)
		}
		index = 5
		p.Observe([]replication.Applied{{Index: 5}})
		waiting := read()
		synctest.Wait()
		select {
		case err := <-waiting:
			t.Fatalf("decisions are returned before the entry is published: %v", err)
		default:
		}
		ctx, cancel := context.WithCancel(t.Context())
		go p.Run(ctx)
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		canceled, stop := context.WithCancel(t.Context())
		stop()
		index = 6
		if _, err := p.Decisions(canceled, DecisionQuery{}); err == nil {
			t.Error("a canceled request waits for an entry without an error")
		}
		cancel()
		if err := <-read(); err != nil {
			t.Errorf("after the end: %v", err)
		}
	})
}
