package server

import (
	"cmp"
	"slices"
	"strings"
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

// Elections that repeat because this process is scheduled late have that as the reason, with
// or without a leader. The check does not fail, since a delayed server still answers.
func TestReady_ReportsSchedulingDelay(t *testing.T) {
	const late = "scheduling delay of 700 ms exceeds half of the election timeout of 500 ms"
	var problem string
	delay := func() (time.Duration, string) { return 700 * time.Millisecond, problem }
	runServers(t, 1, func(c *Config) { c.SchedulingDelay = delay }, func(w *harness) {
		s := w.leader().server
		for _, problem = range []string{"", late} {
			checks := s.Ready(w.ctx)
			at := slices.IndexFunc(checks, func(c Check) bool { return c.Name == "scheduling" })
			if at < 0 || !checks[at].OK || checks[at].Detail != cmp.Or(problem, "delay of 700ms at most") {
				t.Errorf("problem %q: checks %+v", problem, checks)
			}
			if got := noLeaderReason(&HealthChecks{SchedulingDelay: delay}); strings.Contains(got, late) != (problem != "") {
				t.Errorf("problem %q: without a leader %q", problem, got)
			}
		}
	})
}
