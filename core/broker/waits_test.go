package broker_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
)

// A WaitUntil is compared with the current wall clock. If the clock of a server was
// an hour behind at its start, evaluations would otherwise wait an hour longer.
func TestWaitUntil_IsByTheClockAsItIsNow(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := &coretest.Clock{}
			b, err := broker.New(broker.Config{Clock: c, Rand: rand.New(rand.NewPCG(7, 7))})
			if err != nil {
				t.Fatal(err)
			}
			b.Enable()
			defer b.Disable()
			c.Set(by)
			b.Enqueue(with(eval("later", 50, 1), func(e *model.Evaluation) { e.WaitUntil = c.Now().Add(time.Minute).UnixNano() }))
			time.Sleep(time.Minute - time.Second)
			if d, early := b.TryDequeue(nil); early {
				t.Fatalf("clock set by %v: %s comes before its time", by, d.Eval.ID)
			}
			time.Sleep(2 * time.Second)
			d, ok := b.TryDequeue(nil)
			if !ok {
				t.Fatalf("clock set by %v: it does not come at its time", by)
			}
			if err := b.Ack(d.Eval.ID, d.Token, 1); err != nil {
				t.Fatal(err)
			}
		})
	}
}
