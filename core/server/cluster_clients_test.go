package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// simGuarded is the label that a strict budget selects; the budget keeps simKept
// allocations available.
const (
	simGuarded = "guarded"
	simKept    = 2
)

// simKeys are the jobs that clients write. The key determines the job, except for its
// request and the value that it carries.
var simKeys = []string{"low", "guarded", "mid", "gang", "batch", "high"}

func simJob(key, value string, ask int64) *model.Job {
	b := coretest.Job(key).Count(3)
	switch key {
	case "low":
		b.Priority(10)
	case "guarded":
		b.Priority(20).With(func(g *model.Group) { g.Labels = map[string]string{"app": simGuarded} })
	case "mid":
		b.Priority(50)
	case "gang":
		b.Priority(60).Count(2).Change(func(j *model.Job) { j.AllAtOnce = true })
	case "batch":
		b.Priority(40).Type(model.JobBatch).Count(2)
	case "high":
		b.Priority(90)
	}
	return b.Ask(ask, 100, 0).Change(func(j *model.Job) { j.Meta = map[string]string{"value": value} }).Obj()
}

// simDisconnect holds the disconnect blocks of jobs.
var simDisconnect = map[string]*model.Disconnect{
	"low":   {},
	"mid":   {LostAfter: int64(10 * time.Second), Replace: true},
	"gang":  {LostAfter: int64(15 * time.Second)},
	"batch": {Replace: true},
}

func simConfig(policy string) *model.SchedulerConfig {
	c := coretest.AllPreempt()
	c.Policy = policy
	return c
}

// call calls f on any server over the network. If the error is retryable, the outcome is
// unknown.
func (c *simCluster) call(from string, r *rand.Rand, f func(ctx context.Context, s *Server) error) error {
	id := c.servers[r.IntN(len(c.servers))].id
	err := errLost
	for range 4 {
		run := c.server(id).run.Load()
		if run == nil {
			time.Sleep(20 * time.Millisecond)
			id = c.servers[r.IntN(len(c.servers))].id
			continue
		}
		ctx, cancel := context.WithTimeout(c.ctx, 4*time.Second)
		err = c.net.request(from, id, func() error { return f(ctx, run.server) }, nil, run.dead)
		cancel()
		var e *apierror.Error
		if !errors.As(err, &e) || e.Code != apierror.CodeNotLeader {
			return err
		}
		if id, _ = e.Details["LeaderID"].(string); c.server(id) == nil {
			return err
		}
	}
	return err
}

// isRetryable reports whether a later call may succeed.
func isRetryable(err error) bool {
	switch apierror.CodeOf(err) {
	case apierror.CodeNotLeader, apierror.CodeNoLeader, apierror.CodeUnavailable, apierror.CodeUnknownOutcome:
		return true
	}
	return errors.Is(err, errLost)
}

// A simClient writes and reads jobs.
type simClient struct {
	c    *simCluster
	n    int
	id   string
	rand *rand.Rand
	keys int // number of idempotency keys used

	seen    uint64            // newest index that this client has read
	version map[string]uint64 // of jobs that it has read
}

func newSimClient(c *simCluster, n int) *simClient {
	return &simClient{
		c: c, n: n, id: fmt.Sprint("client", n), version: map[string]uint64{},
		rand: rand.New(rand.NewPCG(c.net.seed, uint64(200+n))),
	}
}

func (s *simClient) run() {
	for i := range s.c.size.requests {
		time.Sleep(time.Duration(s.rand.IntN(1200)) * time.Millisecond)
		key := simKeys[s.rand.IntN(len(simKeys))]
		value := fmt.Sprintf("%d/%d", s.n, i)
		if len(s.c.members) > 0 && s.rand.IntN(3) == 0 {
			s.useBinding(simBindings[s.rand.IntN(len(simBindings))], value)
			continue
		}
		switch s.rand.IntN(8) {
		case 0, 1:
			s.read(key)
		case 2:
			s.readStale(key)
		case 3:
			s.stop(key, s.rand.IntN(3) == 0)
		default:
			s.write(key, value)
		}
	}
}

// write registers a job, and retries with one idempotency key until the outcome is known.
func (s *simClient) write(key, value string) {
	job := simJob(key, value, int64(150+50*s.rand.IntN(5)))
	if s.c.size.disconnects {
		job.Groups[0].Disconnect = simDisconnect[key]
	}
	s.keys++
	idempotency := fmt.Sprint(s.id, "/", s.keys)
	op := s.c.history.start(s.n, simInput{"write", key, value})
	var answer *endpoint.Registered
	err := s.until(func(ctx context.Context, srv *Server) error {
		own, err := copyJob(job)
		if err != nil {
			return err
		}
		answer, err = srv.RegisterJob(ctx, own, endpoint.RegisterOptions{Key: idempotency, ExplicitPriority: true})
		return err
	})
	switch {
	case err == nil:
		op.end("")
		s.seen = max(s.seen, answer.Index)
	case !isRetryable(err):
		s.c.t.Errorf("%s: failed to write job %s: %v", s.id, key, err)
	}
}

// stop stops a job, and purges it if purge is set.
func (s *simClient) stop(key string, purge bool) {
	s.keys++
	idempotency := fmt.Sprint(s.id, "/", s.keys)
	verb := "stop"
	if purge {
		verb = "purge"
	}
	op := s.c.history.start(s.n, simInput{verb, key, ""})
	err := s.until(func(ctx context.Context, srv *Server) error {
		_, err := srv.StopJob(ctx, model.JobKey{Namespace: model.DefaultNamespace, ID: key}, endpoint.StopOptions{Key: idempotency, Purge: purge})
		return err
	})
	switch {
	case err == nil:
		op.end("")
	case apierror.CodeOf(err) == apierror.CodeNotFound:
		op.end(absentJob)
	case !isRetryable(err):
		s.c.t.Errorf("%s: failed to stop job %s: %v", s.id, key, err)
	}
}

// until retries a call until it receives a result, or gives up at the end.
func (s *simClient) until(f func(ctx context.Context, srv *Server) error) error {
	var err error
	for range 12 {
		if err = s.c.call(s.id, s.rand, f); err == nil || !isRetryable(err) {
			return err
		}
		time.Sleep(time.Duration(50+s.rand.IntN(400)) * time.Millisecond)
	}
	return err
}

// absentJob is the value of a job that does not exist.
const absentJob = "absent"

func valueOf(snap *state.Snapshot, key string) string {
	if b := snap.Binding(bindingKey(key)); b != nil {
		if b.Stopped {
			return string(b.Template) + stoppedJob
		}
		return string(b.Template)
	}
	job := snap.Job(model.JobKey{Namespace: model.DefaultNamespace, ID: key})
	switch {
	case job == nil:
		return absentJob
	case job.Stopped:
		return job.Meta["value"] + stoppedJob
	}
	return job.Meta["value"]
}

const stoppedJob = " stopped"

// read makes a consistent read.
func (s *simClient) read(key string) {
	op := s.c.history.start(s.n, simInput{"read", key, ""})
	var value string
	err := s.until(func(ctx context.Context, srv *Server) error {
		snap, err := srv.Consistent(ctx)
		if err == nil {
			value = valueOf(snap, key)
		}
		return err
	})
	switch {
	case err == nil:
		op.end(value)
	case !isRetryable(err):
		s.c.t.Errorf("%s: failed to read job %s: %v", s.id, key, err)
	}
}

// readStale reads from any server, at an index that this client has read or a later one.
func (s *simClient) readStale(key string) {
	var snap *state.Snapshot
	server := s.c.servers[s.rand.IntN(len(s.c.servers))]
	run := server.run.Load()
	if run == nil {
		return
	}
	err := s.c.net.request(s.id, server.id, func() error {
		ctx, cancel := context.WithTimeout(s.c.ctx, 2*time.Second)
		defer cancel()
		var err error
		snap, err = run.server.WaitIndex(ctx, s.seen)
		return err
	}, nil, run.dead)
	if err != nil {
		return // it lags behind, or is unreachable
	}
	if snap.Index() < s.seen {
		s.c.t.Errorf("%s reads the state at index %d after index %d", s.id, snap.Index(), s.seen)
	}
	s.seen = snap.Index()
	job := snap.Job(model.JobKey{Namespace: model.DefaultNamespace, ID: key})
	if job == nil { // not written yet, or purged
		return
	}
	if job.ModifyIndex < s.version[key] {
		s.c.t.Errorf("%s reads job %s at version %d after version %d", s.id, key, job.ModifyIndex, s.version[key])
	}
	s.version[key] = job.ModifyIndex
}

// A simHistory records the operations of clients and their results.
type simHistory struct {
	mu    sync.Mutex
	order atomic.Int64
	ops   []*simOp
}

type simInput struct{ verb, key, value string }

type simOp struct {
	h  *simHistory
	op porcupine.Operation
}

// start records a request. A request without an end may take effect at any later time, or
// never.
func (h *simHistory) start(client int, in simInput) *simOp {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := &simOp{h: h, op: porcupine.Operation{ClientId: client, Input: in, Call: h.order.Add(1), Return: math.MaxInt64, Output: unknownOutcome}}
	h.ops = append(h.ops, o)
	return o
}

const unknownOutcome = "?"

func (o *simOp) end(output string) {
	o.h.mu.Lock()
	defer o.h.mu.Unlock()
	o.op.Output, o.op.Return = output, o.h.order.Add(1)
}

// jobRegister models a job or a binding as a register that can be stopped.
var jobRegister = porcupine.Model{
	Init: func() any { return absentJob },
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(simInput).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, key := range slices.Concat(simKeys, simBindings) {
			parts = append(parts, byKey[key])
		}
		return parts
	},
	Step: func(state, input, output any) (bool, any) {
		in, now, answer := input.(simInput), state.(string), output.(string)
		switch in.verb {
		case "write":
			return true, in.value
		case "stop":
			switch {
			case now == absentJob:
				return answer != "", now
			case strings.HasSuffix(now, stoppedJob):
				return answer != absentJob, now
			}
			return answer != absentJob, now + stoppedJob
		case "purge":
			if now == absentJob {
				return answer != "", now
			}
			return answer != absentJob, absentJob
		}
		return answer == unknownOutcome || answer == now, now
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v = %v", input, output) },
}

func (h *simHistory) check(t testing.TB) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ops []porcupine.Operation
	for _, o := range h.ops {
		ops = append(ops, o.op)
	}
	if porcupine.CheckOperationsTimeout(jobRegister, ops, time.Minute) == porcupine.Ok {
		return
	}
	t.Error("the history of clients is not linearizable:")
	for _, op := range ops {
		t.Logf("client %d, %d to %d: %+v = %v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
	}
}

// A simOperator changes policies, budgets, the configuration and nodes. Refused and lost
// requests are ignored: other changes may conflict.
type simOperator struct {
	c    *simCluster
	rand *rand.Rand
}

func newSimOperator(c *simCluster) *simOperator {
	return &simOperator{c, rand.New(rand.NewPCG(c.net.seed, 300))}
}

func (o *simOperator) run(over <-chan struct{}) {
	o.do(func(ctx context.Context, s *Server) error {
		_, err := s.PutBudget(ctx, &model.Budget{
			Namespace: model.DefaultNamespace, Name: "keeps", Labels: map[string]string{"app": simGuarded},
			MinAvailable: &model.Bound{Number: simKept}, Strict: true,
		})
		return err
	})
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(200+o.rand.IntN(1500)) * time.Millisecond):
		}
		o.do(o.change())
	}
}

func (o *simOperator) do(f func(ctx context.Context, s *Server) error) {
	err := o.c.call("operator", o.rand, f)
	switch apierror.CodeOf(err) {
	case apierror.CodeInvalid, apierror.CodeConflict, apierror.CodeNotFound:
		return
	}
	if err != nil && !isRetryable(err) {
		o.c.t.Errorf("operator received: %v", err)
	}
}

// change returns a random operation.
func (o *simOperator) change() func(ctx context.Context, s *Server) error {
	node, on := o.c.agents[o.rand.IntN(len(o.c.agents))].id, o.rand.IntN(2) == 0
	module := []byte{byte(o.rand.IntN(4))}
	version := func() string {
		v, err := simHost{}.Describe(context.Background(), policy.LoadRequest{Module: module})
		if err != nil {
			o.c.t.Error(err)
			return ""
		}
		return v.ID
	}
	name := []string{"", simPolicy}[o.rand.IntN(2)]
	switch o.rand.IntN(11) {
	case 0, 1:
		return func(ctx context.Context, s *Server) error {
			_, err := s.LoadPolicy(ctx, policy.LoadRequest{Module: module})
			return err
		}
	case 2:
		return func(ctx context.Context, s *Server) error {
			_, err := s.ShadowPolicy(ctx, simPolicy, version())
			return err
		}
	case 3, 4:
		return func(ctx context.Context, s *Server) error {
			_, err := s.ActivatePolicy(ctx, simPolicy, version())
			return err
		}
	case 5:
		return func(ctx context.Context, s *Server) error {
			_, err := s.RollbackPolicy(ctx, simPolicy)
			return err
		}
	case 6:
		return func(ctx context.Context, s *Server) error {
			_, err := s.SetConfig(ctx, simConfig(name), nil)
			return err
		}
	case 7:
		return func(ctx context.Context, s *Server) error {
			_, err := s.SetEligible(ctx, node, on)
			return err
		}
	case 8:
		if on {
			return func(ctx context.Context, s *Server) error {
				_, err := s.DeleteCluster(ctx, simPlain, true)
				return err
			}
		}
		return putPlain
	case 9:
		return o.c.removeLost
	}
	return func(ctx context.Context, s *Server) error {
		var err error
		if on {
			_, err = s.Drain(ctx, node, endpoint.DrainOptions{})
		} else {
			_, err = s.CancelDrain(ctx, node)
		}
		return err
	}
}

// A simAgent is a node: it registers, reports, starts and stops its allocations, and
// sometimes an allocation fails by itself.
type simAgent struct {
	c      *simCluster
	id     string
	secret string
	rand   *rand.Rand
	node   *model.Node

	mu      sync.Mutex
	running map[string]*model.Allocation // allocations that run here
	started map[string]bool              // everything that was ever started here
}

func (c *simCluster) addAgents() {
	for i := range c.size.nodes {
		id := fmt.Sprintf("n%d", i)
		a := &simAgent{
			c: c, id: id, secret: fmt.Sprintf("%x", sha256.Sum256([]byte(id))), rand: rand.New(rand.NewPCG(c.net.seed, uint64(400+i))),
			node: coretest.Node(id, 1000, 1000, 1000), running: map[string]*model.Allocation{}, started: map[string]bool{},
		}
		c.agents = append(c.agents, a)
		c.group.Go(a.run)
	}
}

func (a *simAgent) run() {
	a.c.reports(a.id, a.rand, 2, func(ctx context.Context, s *Server) (*endpoint.NodeLease, error) {
		node := *a.node
		return s.RegisterNode(ctx, &node, a.secret)
	}, func(ctx context.Context, s *Server) (*endpoint.NodeLease, error) {
		return s.Heartbeat(ctx, a.id, a.secret)
	}, a.work)
}

// reports runs an agent until the cluster stops: it registers, sends a number of heartbeats
// per TTL, and calls work with the state.
func (c *simCluster) reports(id string, r *rand.Rand, times time.Duration, register, beat func(context.Context, *Server) (*endpoint.NodeLease, error), work func(*state.Snapshot)) {
	known, next := false, time.Now()
	for c.ctx.Err() == nil {
		var snap *state.Snapshot
		beats := !time.Now().Before(next)
		err := c.call(id, r, func(ctx context.Context, s *Server) error {
			if err := s.writer.CheckLeader(); err != nil {
				return err
			}
			var lease *endpoint.NodeLease
			var err error
			switch {
			case !known:
				lease, err = register(ctx, s)
			case beats:
				lease, err = beat(ctx, s)
			}
			if lease != nil {
				next = time.Now().Add(lease.TTL / times)
			}
			snap = s.Snapshot()
			return err
		})
		switch {
		case apierror.CodeOf(err) == apierror.CodeNotFound:
			known = false
		case err == nil:
			known = true
			work(snap)
		}
		select {
		case <-time.After(time.Duration(200+r.IntN(100)) * time.Millisecond):
		case <-c.ctx.Done():
		}
	}
}

// work starts and stops allocations as the state requires, and reports them.
func (a *simAgent) work(snap *state.Snapshot) {
	a.mu.Lock()
	var updates []apply.ClientUpdate
	report := func(id string, s model.ClientStatus) {
		updates = append(updates, apply.ClientUpdate{AllocID: id, Status: s, Started: true, StartTime: time.Now().UnixNano()})
	}
	wanted := map[string]bool{}
	var room int64
	for _, alloc := range snap.AppendNodeAllocs(nil, a.id) {
		if alloc.Live() {
			wanted[alloc.ID] = true
		}
		if alloc.Stopping() {
			report(alloc.ID, model.ClientComplete)
		}
	}
	for id, alloc := range a.running {
		if !wanted[id] {
			delete(a.running, id)
			continue
		}
		room += alloc.Group.Resources["cpu"]
	}
	for _, alloc := range snap.AppendNodeAllocs(nil, a.id) {
		ask := alloc.Group.Resources["cpu"]
		switch {
		case !alloc.Live():
		case a.running[alloc.ID] != nil && alloc.Job.Type == model.JobBatch && alloc.Client == model.ClientRunning:
			report(alloc.ID, model.ClientComplete)
		case a.running[alloc.ID] != nil && alloc.Client == model.ClientPending:
			report(alloc.ID, model.ClientRunning) // an earlier report was lost
		case a.running[alloc.ID] == nil && a.started[alloc.ID]:
			report(alloc.ID, model.ClientFailed) // it was stopped here while the state did not assign it
		case a.running[alloc.ID] == nil && room+ask <= a.node.Capacity["cpu"]:
			a.running[alloc.ID], a.started[alloc.ID] = alloc, true
			room += ask
			if a.rand.IntN(40) == 0 {
				report(alloc.ID, model.ClientFailed)
			} else {
				report(alloc.ID, model.ClientRunning)
			}
		}
	}
	a.mu.Unlock()
	if len(updates) == 0 {
		return
	}
	_ = a.c.call(a.id, a.rand, func(ctx context.Context, s *Server) error { // retried at the next round
		_, err := s.UpdateAllocs(ctx, a.id, a.secret, updates)
		return err
	})
}

// checkAgreement checks that the node runs exactly its allocations in the state.
func (a *simAgent) checkAgreement(snap *state.Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	live := map[string]bool{}
	for _, alloc := range snap.AppendNodeAllocs(nil, a.id) {
		if alloc.Live() {
			live[alloc.ID] = true
			if a.running[alloc.ID] == nil {
				a.c.t.Errorf("node %s does not run %s, which is assigned to it", a.id, alloc.ID)
			}
		}
	}
	for id := range a.running {
		if !live[id] {
			a.c.t.Errorf("node %s runs %s, which is not assigned to it", a.id, id)
		}
	}
}
