package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A load is a set of concurrent clients that record which of their writes the server
// acknowledged. Each client writes only to objects of its own and one at a time, so the
// expected value of each object is known: the last acknowledged one, or a later one whose
// request failed.
type load struct {
	t       *testing.T
	workers []*loadWorker
	acked   atomic.Int64 // number of acknowledged writes
	nodes   []string
}

// A loadWorker is one client of a load.
type loadWorker struct {
	load *load
	name string
	rng  *rand.Rand

	jobs          map[string]*trackedValue[jobValue]
	drains        map[string]*trackedValue[bool] // by node ID
	tokens        map[string]bool                // accessor ID to whether the token exists
	versions      map[string]string              // policy version to the digest of its module, "" for a builtin
	active        trackedValue[string]           // active policy version
	priorityDelta trackedValue[int]              // of the scheduler configuration
	failures      []error
}

// A trackedValue holds the last acknowledged and the last requested value of an object.
// If uncertain is true the last request failed and may or may not have been applied.
type trackedValue[T comparable] struct {
	acked, requested  T
	exists, uncertain bool
}

// request records a value before it is sent to the server.
func (b *trackedValue[T]) request(v T) { b.requested, b.uncertain = v, true }

// complete records the result of the last request. If err is not nil the value remains
// uncertain.
func (b *trackedValue[T]) complete(err error) {
	if err == nil {
		b.acked, b.exists, b.uncertain = b.requested, true, false
	}
}

// matches reports whether the server may have the value v, or no value if exists is false.
func (b *trackedValue[T]) matches(v T, exists bool) bool {
	switch {
	case !exists:
		return !b.exists
	case b.uncertain && v == b.requested:
		return true
	}
	return b.exists && v == b.acked
}

// resolve records the value that the server has, which removes the uncertainty before the
// next round.
func (b *trackedValue[T]) resolve(v T, exists bool) {
	b.uncertain = false
	if exists {
		b.acked, b.exists = v, true
	}
}

// A jobValue is the tracked part of a job.
type jobValue struct {
	rev, count int
	stopped    bool
}

func newLoad(t *testing.T, workers int, seed uint64) *load {
	l := &load{t: t}
	for i := range workers {
		l.workers = append(l.workers, &loadWorker{
			load: l, name: fmt.Sprint("p", i), rng: rand.New(rand.NewPCG(seed, uint64(i))),
			jobs: map[string]*trackedValue[jobValue]{}, drains: map[string]*trackedValue[bool]{}, tokens: map[string]bool{}, versions: map[string]string{},
		})
	}
	return l
}

// prepare loads and activates a policy, so that evictions depend on it from the start.
func (l *load) prepare(c *client.Client) {
	l.t.Helper()
	p := l.workers[2]
	load := &client.PolicyLoad{Name: "rules", Builtin: "least-waste"}
	v, err := c.Policies().Load(l.t.Context(), load)
	if err != nil {
		l.t.Fatal(err)
	}
	p.versions[v.ID] = ""
	p.active.request(v.ID)
	_, err = c.Policies().Activate(l.t.Context(), "rules", v.ID)
	p.active.complete(err)
	if err == nil {
		err = l.workers[3].changeScheduler(l.t.Context(), c)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// run runs all workers until ctx ends. Errors other than an unavailable server fail the
// test.
func (l *load) run(ctx context.Context, dial func() *client.Client) {
	var all sync.WaitGroup
	for i, p := range l.workers {
		c := dial()
		all.Go(func() {
			for ctx.Err() == nil {
				err := p.step(ctx, c, i)
				if err == nil {
					l.acked.Add(1)
				} else if ctx.Err() == nil && !isUnavailable(err) {
					p.failures = append(p.failures, err)
				}
				if err != nil {
					select { // the server may have been killed, in which case ctx ends soon
					case <-ctx.Done():
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
		})
	}
	all.Wait()
	for _, p := range l.workers {
		for _, err := range p.failures {
			l.t.Errorf("%s: %v", p.name, err)
		}
		p.failures = nil
	}
}

// isUnavailable reports whether an error means that no leader answered the request.
func isUnavailable(err error) bool {
	return !isServerError(err) || client.HasCode(err, client.CodeUnavailable) || client.HasCode(err, client.CodeNoLeader)
}

// step performs one write. All workers change jobs; each of the other kinds of objects
// belongs to one worker.
func (p *loadWorker) step(ctx context.Context, c *client.Client, i int) error {
	if p.rng.IntN(4) > 0 {
		return p.changeJob(ctx, c)
	}
	switch i {
	case 0:
		return p.changeDrain(ctx, c)
	case 1:
		return p.changeToken(ctx, c)
	case 2:
		return p.changePolicy(ctx, c)
	case 3:
		return p.changeScheduler(ctx, c)
	}
	return p.changeJob(ctx, c)
}

// changeJob registers, updates, scales or stops a job. It does nothing if the last request
// for the job is uncertain.
func (p *loadWorker) changeJob(ctx context.Context, c *client.Client) error {
	id := fmt.Sprintf("%s-%d", p.name, p.rng.IntN(6))
	b := p.jobs[id]
	if b == nil {
		b = &trackedValue[jobValue]{}
		p.jobs[id] = b
	}
	if b.uncertain {
		return nil // only one request per job may be uncertain
	}
	value := b.acked
	value.rev = max(b.acked.rev, b.requested.rev) + 1
	if b.exists && !b.acked.stopped && p.rng.IntN(3) == 0 {
		value.stopped, value.rev = true, b.acked.rev
		b.request(value)
		_, err := c.Jobs().Stop(ctx, id, nil)
		b.complete(err)
		return err
	}
	value.stopped, value.count = false, 1+p.rng.IntN(5)
	b.request(value)
	_, err := c.Jobs().Register(ctx, p.jobSpec(id, value), nil)
	b.complete(err)
	return err
}

// jobSpec returns a job with random priority and resources that records value.rev in its
// meta.
func (p *loadWorker) jobSpec(id string, value jobValue) *client.Job {
	priority := []int{10, 30, 50, 70, 90}[p.rng.IntN(5)]
	memory, cpu := 100*(1+p.rng.IntN(5)), 100
	kill := 50 * time.Millisecond
	config := map[string]any{}
	kind := "service"
	if strings.HasSuffix(id, "5") { // by ID, because the type of a job cannot change
		kind, config["run_for"] = "batch", fmt.Sprintf("%dms", 50+p.rng.IntN(2000))
	}
	return &client.Job{
		ID: id, Type: kind, Priority: &priority, Meta: map[string]string{"rev": strconv.Itoa(value.rev)},
		TaskGroups: []*client.TaskGroup{{
			Name: "g", Count: &value.count,
			Tasks: []*client.Task{{
				Name: "main", Driver: "sim", Config: config, KillTimeout: &kill,
				Resources: &client.Resources{MemoryMB: &memory, CPU: &cpu},
			}},
		}},
	}
}

// changeDrain enables or disables the drain of a node. It does nothing if the last request
// for the node is uncertain.
func (p *loadWorker) changeDrain(ctx context.Context, c *client.Client) error {
	id := p.load.nodes[p.rng.IntN(len(p.load.nodes))]
	b := p.drains[id]
	if b == nil {
		b = &trackedValue[bool]{exists: true}
		p.drains[id] = b
	}
	if b.uncertain {
		return nil
	}
	b.request(p.rng.IntN(4) == 0)
	_, err := c.Nodes().Drain(ctx, id, b.requested, true)
	b.complete(err)
	return err
}

// changeToken creates or deletes a token. If the deletion fails the token is not tracked
// any longer.
func (p *loadWorker) changeToken(ctx context.Context, c *client.Client) error {
	if p.rng.IntN(3) == 0 {
		for accessor, there := range p.tokens {
			if !there {
				continue
			}
			err := c.Operator().TokenDelete(ctx, accessor)
			if err == nil {
				p.tokens[accessor] = false
			} else {
				delete(p.tokens, accessor) // the deletion may or may not have been applied
			}
			return err
		}
	}
	made, err := c.Operator().TokenCreate(ctx, &client.TokenCreateRequest{Name: p.name, Roles: []string{"read"}})
	if err == nil {
		p.tokens[made.AccessorID] = true
	}
	return err
}

// modules are small policy modules.
var modules = []string{"default-c.wasm", "default-rust.wasm", "decay-c.wasm", "default-assemblyscript.wasm"}

// changePolicy loads or activates a policy version.
func (p *loadWorker) changePolicy(ctx context.Context, c *client.Client) error {
	if len(p.versions) > 0 && !p.active.uncertain && p.rng.IntN(2) == 0 {
		for id := range p.versions { // any
			p.active.request(id)
			_, err := c.Policies().Activate(ctx, "rules", id)
			p.active.complete(err)
			return err
		}
	}
	load := &client.PolicyLoad{Name: "rules", Builtin: "least-waste", Config: json.RawMessage(fmt.Sprintf(`{"bands":%d}`, 2+p.rng.IntN(60)))}
	if p.rng.IntN(4) == 0 {
		module, err := os.ReadFile("../../sdk/abi/testdata/guests/" + modules[p.rng.IntN(len(modules))])
		if err != nil {
			return err
		}
		load = &client.PolicyLoad{Name: "rules", Module: module}
	}
	v, err := c.Policies().Load(ctx, load)
	if err == nil {
		p.versions[v.ID] = ""
		if v.Kind == "wasm" {
			p.versions[v.ID] = v.Digest
		}
	}
	return err
}

// changeScheduler sets the priority delta. It does nothing if the last request is uncertain.
func (p *loadWorker) changeScheduler(ctx context.Context, c *client.Client) error {
	if p.priorityDelta.uncertain {
		return nil
	}
	delta := 5 + p.rng.IntN(10)
	conf := &client.SchedulerConfiguration{
		SchedulerAlgorithm: "binpack", PriorityDelta: &delta, Policy: "rules",
		PreemptionConfig: client.PreemptionConfig{SystemSchedulerEnabled: true, SysBatchSchedulerEnabled: true, BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true},
	}
	p.priorityDelta.request(delta)
	_, err := c.Scheduler().Set(ctx, conf, nil)
	p.priorityDelta.complete(err)
	return err
}

// check compares a state with the acknowledged writes and resolves uncertain values.
func (l *load) check(sn *state.Snapshot) {
	l.t.Helper()
	for _, p := range l.workers {
		p.checkJobs(sn)
		for id, b := range p.drains {
			n := sn.Node(id)
			if n == nil || !b.matches(n.Drain, true) {
				l.t.Errorf("node %s: %+v, want %+v", id, n, b)
				continue
			}
			b.resolve(n.Drain, true)
		}
		for accessor, there := range p.tokens {
			if (sn.Token(accessor) != nil) != there {
				l.t.Errorf("token %s exists: %t, want %t", accessor, !there, there)
			}
		}
		for id := range p.versions {
			if sn.PolicyVersion(id) == nil {
				l.t.Errorf("policy version %s is missing", id)
			}
		}
		if s := sn.PolicyState("rules"); s != nil || p.active.exists {
			active := ""
			if s != nil {
				active = s.Active
			}
			if p.active.exists || p.active.uncertain {
				if !p.active.matches(active, active != "") {
					l.t.Errorf("active policy version is %q, want %+v", active, p.active)
				}
				p.active.resolve(active, active != "")
			}
		}
		if p.priorityDelta.exists || p.priorityDelta.uncertain {
			delta, set := priorityDelta(sn)
			if !p.priorityDelta.matches(delta, set) {
				l.t.Errorf("priority delta is %d, want %+v", delta, p.priorityDelta)
			}
			p.priorityDelta.resolve(delta, set)
		}
	}
}

// priorityDelta returns the priority delta of the scheduler configuration, if set.
func priorityDelta(sn *state.Snapshot) (delta int, set bool) {
	if d := sn.Config().PriorityDelta; d != nil {
		return int(*d), true
	}
	return 0, false
}

// isServerError reports whether an error is a response of a server.
func isServerError(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.StatusCode != 0
}

// checkJobs compares the jobs of a state with the acknowledged writes. The test also fails
// if the versions of a job are not in descending order.
func (p *loadWorker) checkJobs(sn *state.Snapshot) {
	t := p.load.t
	t.Helper()
	for id, b := range p.jobs {
		key := model.JobKey{Namespace: "default", ID: id}
		j := sn.Job(key)
		value := jobValue{}
		if j != nil {
			rev, err := strconv.Atoi(j.Meta["rev"])
			if err != nil {
				t.Fatal(err)
			}
			value = jobValue{rev: rev, count: j.Groups[0].Count, stopped: j.Stopped}
		}
		if !b.matches(value, j != nil) {
			t.Errorf("job %s: %+v (there: %t), want %+v", id, value, j != nil, *b)
		}
		b.resolve(value, j != nil)
		last := uint64(0)
		for i, v := range sn.JobVersions(key) {
			if i > 0 && v.Version >= last {
				t.Errorf("job %s: version %d follows version %d, want descending order", id, v.Version, last)
			}
			last = v.Version
		}
	}
}
