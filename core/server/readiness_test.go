package server

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
)

// A server that restarts alone has a log but no state: it learns the commit index from a
// leader, and must not report an empty state as current.
func TestReady_NotCaughtUpBeforeLeaderIsKnown(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		w.registerJob(coretest.Job("web"))
		time.Sleep(time.Minute) // it checks periodically
		for _, m := range w.members {
			if !m.server.CaughtUp() {
				t.Errorf("%s has a leader, but is not caught up", m.id)
			}
			m.halt()
		}
		alone := w.members[0]
		alone.start()
		time.Sleep(time.Minute)
		if alone.server.CaughtUp() || caughtUp(alone).OK {
			t.Errorf("%s has had no leader since its start, but reports that it is caught up: %+v", alone.id, caughtUp(alone))
		}
		for _, m := range w.members[1:] {
			m.start()
		}
		time.Sleep(time.Minute)
		for _, m := range w.members {
			if !m.server.CaughtUp() || !caughtUp(m).OK {
				t.Errorf("%s is not caught up although there is a leader: %+v", m.id, caughtUp(m))
			}
		}
	})
}

func caughtUp(m *member) Check { return m.server.checkCaughtUp() }
