package agent_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/agent"
)

func TestPressure_EvictsInKubernetesOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		var short atomic.Bool
		start(t, c, func(conf *agent.Config) {
			conf.Pressure = &agent.Pressure{Interval: time.Second, Read: func() (agent.Memory, error) {
				m := agent.Memory{Total: 1000 << 20, Available: 500 << 20}
				if short.Load() {
					m.Available = 10 << 20
				}
				return m, nil
			}}
		})
		// Each requested 100 MiB.
		c.place(
			work("within-low", "sim", 10, `{"memory":90}`),
			work("within-low-less", "sim", 10, `{"memory":50}`),
			work("over-high", "sim", 90, `{"memory":300}`),
			work("over-low", "sim", 20, `{"memory":110}`),
			work("over-low-more", "sim", 20, `{"memory":150}`),
			work("within-high", "sim", 90, `{"memory":100}`),
		)
		settle(10 * time.Second)
		if n := len(c.order()); n != 6 {
			t.Fatalf("with memory left: %v", c.order())
		}
		short.Store(true)
		settle(time.Minute)
		var evicted []string
		for _, u := range c.history {
			if u.Status.Terminal() {
				evicted = append(evicted, u.ID)
				if u.Status != agent.StatusFailed || u.EvictedBy != agent.EvictedByPressure || !strings.Contains(u.Text, "10 MiB of free memory") {
					t.Errorf("%+v: unexpected status or text", u)
				}
			}
		}
		want := []string{"over-low-more", "over-low", "over-high", "within-low", "within-low-less", "within-high"}
		if !slices.Equal(evicted, want) {
			t.Errorf("evicted %v\n   want %v", evicted, want)
		}
	})
}

func TestPressure_EvictsMinimum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		var stalls atomic.Bool
		stalls.Store(true)
		first := work("first", "sim", 10, `{"memory":1,"stop_after":"20s"}`)
		first.Tasks[0].KillTimeout = time.Minute
		start(t, c, func(conf *agent.Config) {
			conf.Pressure = &agent.Pressure{Interval: time.Second, MaxStall: 10, Read: func() (agent.Memory, error) {
				m := agent.Memory{Total: 1 << 30, Available: 1 << 30}
				if stalls.Load() {
					m.Stall = 30
				}
				return m, nil
			}}
		})
		c.place(first, work("second", "sim", 20, ``))
		settle(15 * time.Second)
		stalls.Store(false) // the memory of the first is about to be released
		settle(time.Minute)
		if c.status("first") != agent.StatusFailed || c.status("second") != agent.StatusRunning {
			t.Errorf("reports: %v", c.order())
		}
	})
}
