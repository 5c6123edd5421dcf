package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is a broker with workers whose planner the test controls.
type fixture struct {
	t      *testing.T
	broker *broker.Broker
	store  *state.Store
	pool   *worker.Pool

	mu      sync.Mutex
	plan    func(ctx context.Context, p *model.Plan) (*model.PlanResult, error)
	written []*model.Evaluation
	busy    int
	maxBusy int
}

func newFixture(t *testing.T, workers int, change func(*worker.Config)) *fixture {
	t.Helper()
	b, err := broker.New(broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := &fixture{t: t, broker: b, store: coretest.FilledStore(4, 0)}
	b.Enable()
	policies := coretest.Policies(func() sdk.Policy { return nomad.New() })
	t.Cleanup(policies.Unpin)
	d.pool = worker.NewPool(worker.PoolConfig{
		Source: d, Clock: clock.Real{},
		New: func() *worker.Worker {
			c := worker.Config{
				Queue: worker.LocalQueue(b), Planner: d, States: d.store, Evals: d, Clock: clock.Real{},
				Scheduler: scheduler.New(scheduler.Config{Policies: policies}), NewEvalID: func() string { return "next" },
				Renew: 20 * time.Second,
			}
			if change != nil {
				change(&c)
			}
			return worker.New(c)
		},
	}, workers)
	return d
}

func (d *fixture) Dequeue(ctx context.Context) (broker.Delivery, error) {
	return d.broker.Dequeue(ctx, nil, 0)
}

func (d *fixture) Submit(ctx context.Context, p *model.Plan) (*model.PlanResult, error) {
	token, err := broker.ParseToken(p.EvalToken)
	if err != nil {
		return nil, err
	}
	if err := d.broker.PauseTimer(p.EvalID, token); err != nil {
		return nil, err
	}
	defer func() { _ = d.broker.ResumeTimer(p.EvalID, token) }()
	d.mu.Lock()
	d.busy++
	d.maxBusy = max(d.maxBusy, d.busy)
	plan := d.plan
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.busy--
		d.mu.Unlock()
	}()
	return plan(ctx, p)
}

func (d *fixture) WriteEvals(_ context.Context, _ broker.Delivery, evals ...*model.Evaluation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written = append(d.written, evals...)
	return nil
}

// addJob enqueues an evaluation of a new job.
func (d *fixture) addJob(id string) {
	j := coretest.Job(id).Ask(10, 10, 10).Obj()
	snap := coretest.PutJobs(d.store, j)
	e := coretest.Eval(j)
	e.CreateIndex, e.ModifyIndex = snap.Index(), snap.Index()
	d.broker.Enqueue(e)
}

func committed(_ context.Context, p *model.Plan) (*model.PlanResult, error) {
	r := &model.PlanResult{Index: p.SnapshotIndex + 1}
	for i := range p.Groups {
		r.Committed = append(r.Committed, i)
	}
	return r, nil
}

func rejected(_ context.Context, p *model.Plan) (*model.PlanResult, error) {
	return &model.PlanResult{Rejected: []model.Rejection{{Group: 0, Reason: "no"}}, RefreshIndex: p.SnapshotIndex}, nil
}

func (d *fixture) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.pool.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (d *fixture) locked(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *fixture) counts() broker.Counts {
	stats := d.broker.Stats()
	return stats.Total()
}

func TestPool_ProcessesConcurrentlyAndResizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, 3, nil)
		d.plan = func(ctx context.Context, p *model.Plan) (*model.PlanResult, error) {
			time.Sleep(time.Second)
			return committed(ctx, p)
		}
		defer d.run()()
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			d.addJob(id)
		}
		time.Sleep(3 * time.Second)
		d.locked(func() {
			if d.maxBusy != 3 || len(d.written) != 6 {
				t.Errorf("%d plans at a time, %d evaluations written, want 3 and 6", d.maxBusy, len(d.written))
			}
			d.maxBusy = 0
		})
		d.pool.Resize(0)
		synctest.Wait() // idle workers have stopped
		d.addJob("g")
		time.Sleep(time.Minute)
		if c := d.counts(); c.Ready != 1 {
			t.Errorf("pool without workers: counts %+v, want one ready", c)
		}
		d.pool.Resize(1)
		d.addJob("h")
		time.Sleep(3 * time.Second)
		d.locked(func() {
			if d.maxBusy != 1 || len(d.written) != 8 {
				t.Errorf("%d plans at a time, %d evaluations written, want 1 and 8", d.maxBusy, len(d.written))
			}
		})
	})
}

// A plan may be queued for longer than a lease; the evaluation must not be delivered to
// another worker meanwhile.
func TestWorker_HoldsLeaseWhilePlanIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, 2, nil)
		d.plan = func(ctx context.Context, p *model.Plan) (*model.PlanResult, error) {
			time.Sleep(10 * time.Minute)
			return committed(ctx, p)
		}
		defer d.run()()
		d.addJob("a")
		time.Sleep(11 * time.Minute)
		d.locked(func() {
			if d.maxBusy != 1 || len(d.written) != 1 {
				t.Errorf("%d plans at a time, %d evaluations written, want 1 and 1", d.maxBusy, len(d.written))
			}
		})
		if c := d.counts(); c != (broker.Counts{}) {
			t.Errorf("left %+v", c)
		}
	})
}

func TestWorker_RenewsLeaseWhileProcessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, 2, func(c *worker.Config) { c.States = slowStates{c.States} })
		d.plan = committed
		defer d.run()()
		d.addJob("a")
		time.Sleep(4 * time.Minute)
		d.locked(func() {
			if len(d.written) != 1 {
				t.Errorf("%d evaluations written, want 1", len(d.written))
			}
		})
	})
}

// slowStates take three leases to return.
type slowStates struct{ worker.States }

func (s slowStates) WaitIndex(ctx context.Context, index uint64) (*state.Snapshot, error) {
	time.Sleep(3 * time.Minute)
	return s.States.WaitIndex(ctx, index)
}

func TestWorker_RetriesLaterAfterRepeatedRejections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, 1, func(c *worker.Config) { c.Retry = time.Minute })
		d.plan = rejected
		defer d.run()()
		d.addJob("a")
		time.Sleep(time.Second)
		d.locked(func() {
			if len(d.written) != 2 {
				t.Fatalf("written %v, want two evaluations", d.written)
			}
			done, again := d.written[0], d.written[1]
			if done.Status != model.EvalFailed || again.TriggeredBy != worker.TriggerMaxPlans || again.Previous != done.ID {
				t.Errorf("written %+v and %+v", done, again)
			}
			if wait := time.Until(time.Unix(0, again.WaitUntil)); wait < 58*time.Second || wait > time.Minute {
				t.Errorf("follow-up is delayed by %v, want a minute", wait)
			}
		})
		if c := d.counts(); c != (broker.Counts{}) {
			t.Errorf("broker counts %+v, want the evaluation acked", c)
		}
	})
}

// Plans that were overtaken are retried at once, more often than plans that the current
// state rejects.
func TestWorker_RetriesOutdatedPlansAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, 1, func(c *worker.Config) { c.Retry = time.Minute })
		lost := 0
		d.plan = func(ctx context.Context, p *model.Plan) (*model.PlanResult, error) {
			if lost == 15 {
				return committed(ctx, p)
			}
			lost++
			txn := d.store.Begin(d.store.Snapshot().Index() + 1)
			index := txn.Commit().Index()
			return &model.PlanResult{Rejected: []model.Rejection{{Reason: "overtaken"}}, RefreshIndex: index}, nil
		}
		defer d.run()()
		d.addJob("a")
		time.Sleep(time.Second)
		d.locked(func() {
			if len(d.written) != 1 || d.written[0].Status != model.EvalComplete || lost != 15 {
				t.Errorf("written %+v after %d plans that were overtaken", d.written, lost)
			}
		})
	})
}

// The worker that completed the evaluation lost the response, and the snapshot that it used
// is unknown. The job may have changed since, and its newer evaluation waits behind this
// one: if this one were acked unprocessed, the newer one would count as covered, and the
// job would never be evaluated.
func TestWorker_ReprocessesTerminalEvaluation(t *testing.T) {
	for name, c := range map[string]struct {
		ask  int64
		want []model.EvalStatus
	}{
		"room":    {10, []model.EvalStatus{model.EvalComplete}},
		"no room": {1_000_000, []model.EvalStatus{model.EvalComplete, model.EvalBlocked}}, // another one: a terminal evaluation is never blocked again
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t, 1, nil)
				d.plan = committed
				j := coretest.Job("a").Ask(c.ask, 10, 10).Obj()
				e := coretest.Eval(j)
				e.CreateIndex = coretest.PutJobs(d.store, j).Index()
				e.ModifyIndex, e.Status = e.CreateIndex, model.EvalBlocked
				d.broker.Enqueue(e)
				over := *e
				over.Status = model.EvalComplete
				txn := d.store.Begin(d.store.Snapshot().Index() + 1)
				txn.EvalWriter().Upsert(&over)
				txn.Commit()
				defer d.run()()
				time.Sleep(time.Second)
				d.locked(func() {
					var got []model.EvalStatus
					for _, w := range d.written {
						got = append(got, w.Status)
					}
					if !slices.Equal(got, c.want) {
						t.Errorf("written %v, want %v", got, c.want)
					}
				})
				if c := d.counts(); c != (broker.Counts{}) {
					t.Errorf("broker counts %+v, want the evaluation acked", c)
				}
			})
		})
	}
}

func TestPool_StopsWithinGracePeriod(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		ends  time.Duration
		done  int
	}{{time.Second, time.Second, 1}, {time.Hour, 5 * time.Second, 0}} {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, 1, nil)
			d.plan = func(ctx context.Context, p *model.Plan) (*model.PlanResult, error) {
				select {
				case <-time.After(c.takes):
					return committed(ctx, p)
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			stop := d.run()
			d.addJob("a")
			d.addJob("b")
			synctest.Wait()
			from := time.Now()
			stop()
			if took := time.Since(from); took != c.ends {
				t.Errorf("pool stopped after %v, want %v", took, c.ends)
			}
			if len(d.written) != c.done {
				t.Errorf("%d written, want %d", len(d.written), c.done)
			}
			d.broker.Disable()
		})
	}
}

func TestPool_BacksOffWhenQueueFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		from := time.Now()
		p := worker.NewPool(worker.PoolConfig{
			Clock: clock.Real{}, New: func() *worker.Worker { return worker.New(worker.Config{}) },
			Source: dequeueFunc(func(context.Context) (broker.Delivery, error) {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Since(from))
				return broker.Delivery{}, errors.New("no")
			}),
		}, 1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		p.Run(ctx)
		for i, want := range []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond, 140 * time.Millisecond} {
			if at[i] != want {
				t.Errorf("try %d at %v, want %v", i, at[i], want)
			}
		}
		if n := len(at); n > 16 {
			t.Errorf("%d tries in a minute", n)
		}
	})
}

type dequeueFunc func(context.Context) (broker.Delivery, error)

func (s dequeueFunc) Dequeue(ctx context.Context) (broker.Delivery, error) { return s(ctx) }
