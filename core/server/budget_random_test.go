package server

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A budgetSchedule is a cluster that is full of allocations under a strict budget, and
// several jobs at a time that preempt them, with concurrent plans.
type budgetSchedule struct {
	workers, machines int
	guarded, keep     int32
	logTakes          time.Duration // duration of a write: plans made meanwhile do not see it
	comers            []preemptorJob
}

type preemptorJob struct {
	after    time.Duration
	count    int
	priority int32
}

func randomSchedule(r *rand.Rand) budgetSchedule {
	s := budgetSchedule{workers: 2 + r.IntN(4), machines: 2 + r.IntN(4)}
	s.guarded = int32(2 * s.machines)
	s.keep = int32(r.IntN(int(s.guarded)))
	s.logTakes = time.Duration(1+r.IntN(20)) * time.Millisecond
	for range 2 + r.IntN(5) {
		c := preemptorJob{count: 1 + r.IntN(3), priority: int32(50 + 10*r.IntN(4))}
		if r.IntN(2) == 0 { // the others arrive together
			c.after = time.Duration(r.IntN(40)) * time.Millisecond
		}
		s.comers = append(s.comers, c)
	}
	return s
}

// A budgetWatch checks the state at every index.
type budgetWatch struct {
	mu                 sync.Mutex
	keep               int
	on                 bool
	evictions, entries int
	least              int
	wrong              []string
}

func (b *budgetWatch) observe(list []replication.Applied) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range list {
		if !b.on {
			continue
		}
		available, evicted := countGuarded(list[i].Snap)
		b.entries, b.evictions, b.least = b.entries+1, max(b.evictions, evicted), min(b.least, available)
		if available < b.keep {
			b.wrong = append(b.wrong, fmt.Sprintf("index %d: %d available, budget requires %d", list[i].Index, available, b.keep))
		}
	}
}

func countGuarded(snap *state.Snapshot) (available, evicted int) {
	for _, a := range snap.AppendJobAllocs(nil, model.JobKey{Namespace: model.DefaultNamespace, ID: "web"}) {
		if a.Available() {
			available++
		}
		if a.Desired == model.DesiredEvict {
			evicted++
		}
	}
	return available, evicted
}

// No schedule of concurrent preemptions takes more from a strict budget than it allows, at
// any index of the state. A soak test runs 1,000 schedules.
func TestServer_ConcurrentPreemptionsRespectStrictBudget(t *testing.T) {
	schedules := 60
	if soak.Full() {
		schedules = 1000
	}
	evictions, reached := 0, 0
	for seed := range schedules {
		s := randomSchedule(rand.New(rand.NewPCG(uint64(seed), 7)))
		b := &budgetWatch{keep: int(s.keep), least: int(s.guarded)}
		runSchedule(t, s, b)
		for _, wrong := range b.wrong {
			t.Errorf("seed %d, %+v: %s", seed, s, wrong)
		}
		if evictions += b.evictions; b.evictions > 0 && b.least == b.keep {
			reached++
		}
	}
	t.Logf("%d schedules, %d evictions; %d schedules exhausted the budget", schedules, evictions, reached)
	if evictions < schedules || reached < schedules/4 {
		t.Errorf("%d evictions in %d schedules, of which %d exhausted the budget: the test covers too little", evictions, schedules, reached)
	}
}

func runSchedule(t *testing.T, s budgetSchedule, b *budgetWatch) {
	runServersInPool(t, nil, 1, func(c *Config) { c.Workers = s.workers }, func(w *harness) {
		w.enablePreemption()
		w.addNodes(s.machines)
		w.mustCall(func(srv *Server) error {
			_, err := srv.PutBudget(w.ctx, &model.Budget{
				Namespace: model.DefaultNamespace, Name: "web", Labels: map[string]string{"app": "web"},
				MinAvailable: &model.Bound{Number: s.keep}, Strict: true,
			})
			return err
		})
		w.registerJob(coretest.Job("web").Priority(20).Count(int(s.guarded)).Ask(450, 450, 0).With(func(g *model.Group) {
			g.Labels = map[string]string{"app": "web"}
		}))
		w.waitIdle()
		if available, _ := countGuarded(w.snap()); available != int(s.guarded) {
			t.Fatalf("%d of %d available at the start", available, s.guarded)
		}
		w.leader().faults.failWith(func(*replication.Entry) (bool, error) {
			time.Sleep(s.logTakes)
			return false, nil
		})
		w.leader().watched.Store(b)
		b.mu.Lock()
		b.on = true
		b.mu.Unlock()
		var all sync.WaitGroup
		for i, c := range s.comers {
			all.Go(func() {
				time.Sleep(c.after)
				w.registerJob(coretest.Job(fmt.Sprint("comer-", i)).Priority(c.priority).Count(c.count).Ask(450, 450, 0))
			})
		}
		all.Wait()
		w.waitIdle()
		b.mu.Lock()
		b.on = false
		b.mu.Unlock()
	})
}
