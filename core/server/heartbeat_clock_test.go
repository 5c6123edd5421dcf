package server

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
)

// A change of the leader's wall clock, forward or back, expires no heartbeat.
func TestHeartbeats_IgnoreWallClockChanges(t *testing.T) {
	for _, by := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		c := &coretest.Clock{}
		runServers(t, 1, func(cfg *Config) { cfg.Clock = c }, func(w *harness) {
			w.addNodes(3)
			w.registerMember("m1")
			w.registerMember("m2")
			defer w.keepAlive("m1")()
			silence := w.keepAlive("m2")
			time.Sleep(time.Minute)
			c.Set(by)
			expect := func(node, cluster bool) { // whether they are down
				t.Helper()
				snap := w.snap()
				for n := range snap.Nodes() {
					if down := n.Status == model.NodeDown; down != (node && n.ID == "n000") {
						t.Errorf("clock set by %v: node %s is down: %t", by, n.ID, down)
					}
				}
				for m := range snap.Clusters() {
					if m.Down != (cluster && m.ID == "m2") {
						t.Errorf("clock set by %v: cluster %s is down: %t", by, m.ID, m.Down)
					}
				}
			}
			for range 100 {
				time.Sleep(100 * time.Millisecond)
				expect(false, false)
			}
			w.machines["n000"].stop()
			silence()
			time.Sleep(45 * time.Second)
			expect(true, true)
		})
	}
}
