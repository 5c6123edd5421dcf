package controlplane

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// awaitFinal waits until the outcome of each answer is final, and returns them.
func awaitFinal(t *testing.T, url string) map[string]int {
	t.Helper()
	var counts map[string]int
	Eventually(t, "all outcomes are final", func(ctx context.Context) string {
		var err error
		if counts, err = Outcomes(ctx, url); err != nil {
			return err.Error()
		}
		if counts["open"] > 0 {
			return fmt.Sprint(counts)
		}
		return ""
	})
	return counts
}

// A burstRun is one row of the comparison.
type burstRun struct {
	scheduler string
	*BurstResult
	outcomes map[string]int
}

func (r *burstRun) String() string {
	return fmt.Sprintf("%-10s %8.2fs %8.2fs %8d  %v", r.scheduler, r.Quantile(.5).Seconds(), r.Quantile(.99).Seconds(), r.Evicted, r.outcomes)
}

// playBurst runs a burst with a stock scheduler, with cede as its extender, or with the
// plugin.
func playBurst(t *testing.T, c *Cluster, b Burst, scheduler string) *burstRun {
	t.Helper()
	defer c.Reset(t)
	b.Fill(t, c)
	r, o, metrics := &burstRun{scheduler: scheduler}, Scheduler{Name: "scheduler-" + scheduler}, ""
	switch scheduler {
	case "extender":
		e := c.StartCede(t, Cede{Path: cede(t), Policy: "kubernetes"})
		defer e.Stop()
		o.Config, metrics = ExtenderConfig(e.URL(), false, "preemptVerb: preempt"), e.MetricsURL()
	case "plugin":
		o.Path, o.Config = plugin(t), PluginConfig("kubernetes")
	}
	s := c.StartScheduler(t, o)
	defer s.Stop()
	if scheduler == "plugin" {
		metrics = s.metrics
	}
	// The client of kube-scheduler limits its requests, and schedulers list different numbers of
	// kinds when they start.
	time.Sleep(3 * time.Second)
	r.BurstResult = b.Run(t, c, nil)
	t.Log(r)
	if metrics != "" {
		r.outcomes = awaitFinal(t, metrics)
	}
	return r
}

// In a burst, each answer is taken, no preemptor evicts more than it needs, and neither
// the extender nor the plugin slows kube-scheduler down noticeably. CEDE_ROUNDS is the
// number of rounds.
func TestBurst_EveryAnswerIsUsed(t *testing.T) {
	b, rounds, schedulers := Burst{Nodes: 200, PodsPerNode: 10, Preemptors: 50, Victims: 2}, setting(t, "CEDE_ROUNDS", 3), []string{"stock", "extender", "plugin"}
	if testing.Short() { // building the plugin takes as long as building Kubernetes
		b, rounds, schedulers = Burst{Nodes: 20, PodsPerNode: 10, Preemptors: 8, Victims: 2}, 1, schedulers[:2]
	}
	c := cluster(t)
	waits := map[string][]time.Duration{}
	table := []string{fmt.Sprintf("%-10s %9s %9s %8s  %s", "scheduler", "p50", "p99", "victims", "outcomes")}
	for range rounds {
		for _, scheduler := range schedulers {
			r := playBurst(t, c, b, scheduler)
			table = append(table, r.String())
			waits[scheduler] = append(waits[scheduler], r.Quantile(.5))
			if want := b.Preemptors * b.Victims; r.Evicted != want {
				t.Errorf("%s: %d victims, want %d", scheduler, r.Evicted, want)
			}
			if want := map[string]int{"chosen": b.Preemptors}; r.outcomes != nil && !maps.Equal(r.outcomes, want) {
				t.Errorf("%s: outcomes %v, want %v", scheduler, r.outcomes, want)
			}
		}
	}
	t.Log("\n" + strings.Join(table, "\n"))
	for scheduler, most := range map[string]float64{"extender": 1.3, "plugin": 1.05} { // the plugin: 1, and the noise of the times
		if waits[scheduler] == nil {
			continue
		}
		ratio := total(waits[scheduler]).Seconds() / total(waits["stock"]).Seconds()
		t.Logf("p50 of the %s is %.2f × that of the stock scheduler", scheduler, ratio)
		if ratio > most && !testing.Short() {
			t.Errorf("want at most %.2f", most)
		}
	}
}

func total(list []time.Duration) (sum time.Duration) {
	for _, d := range list {
		sum += d
	}
	return sum
}

// With the verbs filter and prioritize too, one preemptor causes one eviction.
func TestBurst_OneEvictionPerPreemptorWithAllVerbs(t *testing.T) {
	c := cluster(t)
	for _, preemptors := range []int{1, 5} {
		t.Run(fmt.Sprint(preemptors), func(t *testing.T) {
			b := Burst{Nodes: 20, PodsPerNode: 4, Preemptors: preemptors, Victims: 1}
			b.Fill(t, c)
			defer c.Reset(t)
			e := c.StartCede(t, Cede{Path: cede(t), Policy: "kubernetes"})
			c.StartScheduler(t, Scheduler{Name: "scheduler", Config: ExtenderConfig(e.URL(), false, AllVerbs...)})
			if r := b.Run(t, c, nil); r.Evicted != preemptors {
				t.Errorf("%d pods were evicted, want %d", r.Evicted, preemptors)
			}
			if counts := awaitFinal(t, e.MetricsURL()); !maps.Equal(counts, map[string]int{"chosen": preemptors}) {
				t.Errorf("outcomes %v", counts)
			}
		})
	}
}
