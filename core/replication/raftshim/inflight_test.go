package raftshim

import (
	"testing"
	"testing/synctest"
	"time"
)

// UPSTREAM.md, section 5.
func TestInflight_DrainWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c inflight
		for range 2 {
			if !c.add() {
				t.Fatal("a call is rejected before drain")
			}
		}
		time.AfterFunc(300*time.Millisecond, c.done)
		time.AfterFunc(500*time.Millisecond, c.done)
		from := time.Now()
		c.drain(time.Second)
		if took := time.Since(from); took != 500*time.Millisecond || c.add() {
			t.Errorf("drain took %v, or a call is accepted after it", took)
		}
	})
}

func TestInflight_DrainEndsWithTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c inflight
		c.add()
		from := time.Now()
		c.drain(time.Second)
		c.drain(time.Second) // returns at once
		if took := time.Since(from); took != time.Second {
			t.Errorf("drain took %v with a call that is never answered", took)
		}
		c.done()
	})
}
