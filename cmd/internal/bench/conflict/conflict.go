package conflict

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Config configures a measurement.
type Config struct {
	Nodes    int           // arrival rates are those of the trace in proportion to its nodes
	Duration time.Duration // of virtual time
	Seed     uint64
	// Full is the share of the processors that standing tasks hold from the start.
	Full float64
	// BatchSchedulers share the batch jobs by a hash of their names. One scheduler places
	// service jobs.
	BatchSchedulers int
	// BatchRate and ServiceRate multiply the arrival rates.
	BatchRate, ServiceRate float64
	// ServiceTime is the decision time of a service job, BatchTime that of a batch job.
	// TaskTime is added for each task.
	ServiceTime, BatchTime, TaskTime time.Duration
	// Buckets distributes jobs: each prefers the nodes of a random one of this many
	// buckets. 0: all schedulers rank all nodes alike.
	Buckets int
	// Gang places all tasks of a job or none.
	Gang bool
}

// Result is the result of Measure.
type Result struct {
	Batch   Class `json:"batch"`
	Service Class `json:"service"`
}

// Class holds the figures of batch or service jobs.
type Class struct {
	Jobs      int `json:"jobs"`      // that arrived
	Decided   int `json:"decided"`   // with every task placed
	Partial   int `json:"partial"`   // that the cluster had no capacity for, in whole or in part
	GivenUp   int `json:"givenUp"`   // after too many rejected plans
	Waiting   int `json:"waiting"`   // that were not decided at the end
	Plans     int `json:"plans"`     // submitted
	Conflicts int `json:"conflicts"` // plans that were rejected, in whole or in part
	Tasks     int `json:"tasks"`     // committed
	Rejected  int `json:"rejected"`  // tasks in rejected parts
	// Fraction is the number of conflicts per decided job.
	Fraction float64 `json:"fraction"`
	// Busy is the share of the time that schedulers spend on decisions.
	Busy float64 `json:"busy"`
	// Wait is the mean time from the arrival of a job to the start of its first decision, in
	// seconds.
	Wait float64 `json:"wait"`

	busy, wait time.Duration
	started    int
}

// A cell is the shared state, with its clock and its schedulers.
type cell struct {
	Config
	clock    *clock.Virtual
	end      time.Time
	random   *rand.Rand // workload
	runs     *rand.Rand // run times of tasks
	store    *state.Store
	applier  *planner.Applier
	policies *policy.Set
	batch    []*scheduler
	service  *scheduler
	jobs     int
	ends     map[time.Time][]string // allocations by the time at which they end
	err      error
}

// Measure plays the workload and counts conflicts.
func Measure(ctx context.Context, c Config) (*Result, error) {
	m, err := newCell(c)
	if err != nil {
		return nil, err
	}
	defer m.policies.Unpin()
	r := &Result{}
	m.service = newScheduler(ctx, m, &r.Service, c.ServiceTime)
	defer m.service.stop()
	for range c.BatchSchedulers {
		s := newScheduler(ctx, m, &r.Batch, c.BatchTime)
		defer s.stop()
		m.batch = append(m.batch, s)
	}
	scale := float64(traceNodes) / float64(c.Nodes)
	batch, service := batchShape(), serviceShape()
	m.arrive(&batch, float64(traceBatch)*scale/c.BatchRate, func(id string) *scheduler { return m.batch[hash(id)%uint32(len(m.batch))] })
	m.arrive(&service, float64(traceService)*scale/c.ServiceRate, func(string) *scheduler { return m.service })
	for ctx.Err() == nil && m.err == nil {
		at, ok := m.clock.Next()
		if !ok || at.After(m.end) {
			break
		}
		m.clock.AdvanceTo(at)
	}
	if err := errors.Join(ctx.Err(), m.err); err != nil {
		return nil, err
	}
	r.Batch.finish(c.Duration, c.BatchSchedulers)
	r.Service.finish(c.Duration, 1)
	return r, nil
}

// finish computes ratios.
func (c *Class) finish(d time.Duration, schedulers int) {
	c.Waiting = c.Jobs - c.Decided - c.Partial - c.GivenUp
	c.Busy = c.busy.Seconds() / d.Seconds() / float64(schedulers)
	if c.Decided > 0 {
		c.Fraction = float64(c.Conflicts) / float64(c.Decided)
	}
	if c.started > 0 {
		c.Wait = c.wait.Seconds() / float64(c.started)
	}
}

func newCell(c Config) (*cell, error) {
	set, err := builtin.DefaultSet()
	if err != nil {
		return nil, err
	}
	start := time.Unix(0, 0)
	m := &cell{
		Config: c, clock: clock.NewVirtual(start), end: start.Add(c.Duration), store: state.New(), policies: set,
		random: rand.New(rand.NewPCG(c.Seed, 1)), //nolint:gosec // a workload needs no secure randomness
		runs:   rand.New(rand.NewPCG(c.Seed, 2)), //nolint:gosec // a workload needs no secure randomness
		ends:   map[time.Time][]string{},
	}
	m.applier = planner.NewApplier(planner.Config{
		Store: m.store, Committer: planner.DirectCommitter{Store: m.store}, PlacementVerifier: &feasible.Verifier{},
	})
	return m, m.fill()
}

func (m *cell) begin() *state.Txn { return m.store.Begin(m.store.Snapshot().Index() + 1) }

// fill writes the nodes and standing tasks, on random nodes.
func (m *cell) fill() error {
	txn := m.begin()
	defer txn.Abort()
	txn.ConfigWriter().Set(&model.SchedulerConfig{Algorithm: model.Binpack})
	list := nodes(m.random, m.Nodes, m.Buckets)
	free := make([]model.Resources, len(list))
	var left float64
	for i, n := range list {
		if err := txn.NodeWriter().Upsert(n); err != nil {
			return err
		}
		free[i] = model.Resources{"cpu": n.Capacity["cpu"], "memory": n.Capacity["memory"]}
		left += m.Full * float64(n.Capacity["cpu"])
	}
	standing := serviceShape()
	standing.tasks = []quantile{{1, 1}}
	for misses := 0; left > 0 && misses < m.Nodes; {
		job := standing.job(m.random, fmt.Sprintf("standing-%d", m.jobs), 0, false)
		g := job.Groups[0]
		at := m.random.IntN(len(list))
		cpu, memory := g.Resources["cpu"], g.Resources["memory"]
		if cpu > free[at]["cpu"] || memory > free[at]["memory"] {
			misses++
			continue
		}
		free[at]["cpu"] -= cpu
		free[at]["memory"] -= memory
		left -= float64(cpu)
		if err := txn.JobWriter().Upsert(job); err != nil {
			return err
		}
		txn.AllocWriter().Upsert(&model.Allocation{
			ID: fmt.Sprintf("s%d", m.jobs), Job: job, Group: g, NodeID: list[at].ID, Client: model.ClientRunning, Started: true,
		})
		m.jobs, misses = m.jobs+1, 0
	}
	txn.Commit()
	return nil
}

// arrive starts the arrival of a class of jobs, as a Poisson process.
func (m *cell) arrive(s *shape, mean float64, of func(id string) *scheduler) {
	m.clock.AfterFunc(time.Duration(m.random.ExpFloat64()*mean), func() {
		m.jobs++
		id := fmt.Sprintf("%s-%d", s.kind, m.jobs)
		job := s.job(m.random, id, m.Buckets, m.Gang)
		if err := m.submit(job, s.run, of(id)); err != nil {
			m.err = err
			return
		}
		m.arrive(s, mean, of)
	})
}

// submit writes a job with its evaluation, and queues it at a scheduler.
func (m *cell) submit(job *model.Job, run []quantile, to *scheduler) error {
	txn := m.begin()
	defer txn.Abort()
	if err := txn.JobWriter().Upsert(job); err != nil {
		return err
	}
	eval := &model.Evaluation{
		ID: "eval-" + job.ID, Namespace: job.Namespace, JobID: job.ID, Type: job.Type, Priority: job.Priority,
		TriggeredBy: model.TriggerJobRegister, CreateTime: m.clock.Now().UnixNano(),
	}
	txn.EvalWriter().Upsert(eval)
	snap := txn.Commit()
	to.enqueue(arrival{eval: snap.Eval(eval.ID), at: m.clock.Now(), run: run})
	return nil
}

// started schedules the end of tasks that a plan placed.
func (m *cell) started(ids []string, run []quantile) {
	for _, id := range ids {
		after := time.Duration(draw(m.runs, run)) * time.Second
		at := m.clock.Now().Add(after).Truncate(time.Second)
		if at.After(m.end) {
			continue
		}
		if m.ends[at] == nil {
			m.clock.AfterFunc(at.Sub(m.clock.Now()), func() { m.ended(at) })
		}
		m.ends[at] = append(m.ends[at], id)
	}
}

// ended writes the end of tasks.
func (m *cell) ended(at time.Time) {
	var updates []apply.ClientUpdate
	for _, id := range m.ends[at] {
		updates = append(updates, apply.ClientUpdate{AllocID: id, Status: model.ClientComplete, Started: true})
	}
	delete(m.ends, at)
	txn := m.begin()
	apply.ClientUpdates(txn, at.UnixNano(), updates)
	txn.Commit()
}

func hash(id string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return h.Sum32()
}
