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

// load is people who use a server at the same time, each of whom remembers what was
// acknowledged. Each writes to things of its own, one after the other, so that there
// is one answer to what must be there: what was acknowledged last, or what was asked
// for since, if the answer never came.
type load struct {
	t      *testing.T
	people []*person
	acked  atomic.Int64 // answers
	nodes  []string
}

// person is one of them.
type person struct {
	load *load
	name string
	rng  *rand.Rand

	jobs     map[string]*book[jobWord]
	drains   map[string]*book[bool] // by node
	tokens   map[string]bool        // accessor to whether it is still there
	versions map[string]string      // of policies, to the digest of the module; builtins: ""
	active   book[string]           // version of the policy that this person looks after
	gap      book[int]              // the scheduler's delta; one person sets it
	failures []error
	writes   int // that were asked for
}

// book is what was acknowledged last, and what was asked for since.
type book[T comparable] struct {
	acked, asked T
	known, open  bool
}

func (b *book[T]) ask(v T) { b.asked, b.open = v, true }

// answer notes what became of what was asked. An error leaves it open: it may have
// been done.
func (b *book[T]) answer(err error) {
	if err == nil {
		b.acked, b.known, b.open = b.asked, true, false
	}
}

// holds is whether a value is what must be there; exists is whether there is one.
func (b *book[T]) holds(v T, exists bool) bool {
	switch {
	case !exists:
		return !b.known
	case b.open && v == b.asked:
		return true
	}
	return b.known && v == b.acked
}

// settle takes over what turned out to be there, so that the next round begins
// without doubt.
func (b *book[T]) settle(v T, exists bool) {
	b.open = false
	if exists {
		b.acked, b.known = v, true
	}
}

// jobWord is what is remembered of a job.
type jobWord struct {
	rev, count int
	stopped    bool
}

func newLoad(t *testing.T, people int, seed uint64) *load {
	l := &load{t: t}
	for i := range people {
		l.people = append(l.people, &person{
			load: l, name: fmt.Sprint("p", i), rng: rand.New(rand.NewPCG(seed, uint64(i))),
			jobs: map[string]*book[jobWord]{}, drains: map[string]*book[bool]{}, tokens: map[string]bool{}, versions: map[string]string{},
		})
	}
	return l
}

// prepare has evictions go by a policy that is loaded, from the beginning.
func (l *load) prepare(c *client.Client) {
	l.t.Helper()
	p := l.people[2]
	load := &client.PolicyLoad{Name: "rules", Builtin: "least-waste"}
	v, err := c.Policies().Load(l.t.Context(), load)
	if err != nil {
		l.t.Fatal(err)
	}
	p.versions[v.ID] = ""
	p.active.ask(v.ID)
	_, err = c.Policies().Activate(l.t.Context(), "rules", v.ID)
	p.active.answer(err)
	if err == nil {
		err = l.people[3].settings(l.t.Context(), c)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// run has everybody work until ctx ends. What fails before that is wrong.
func (l *load) run(ctx context.Context, dial func() *client.Client) {
	var all sync.WaitGroup
	for i, p := range l.people {
		c := dial()
		all.Go(func() {
			for ctx.Err() == nil {
				p.writes++
				err := p.act(ctx, c, i)
				if err == nil {
					l.acked.Add(1)
				} else if ctx.Err() == nil && !gone(err) {
					p.failures = append(p.failures, err)
				}
				if err != nil {
					select { // the server may be gone, and who ended it says so soon
					case <-ctx.Done():
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
		})
	}
	all.Wait()
	for _, p := range l.people {
		for _, err := range p.failures {
			l.t.Errorf("%s: %v", p.name, err)
		}
		p.failures = nil
	}
}

// gone is whether an error says that nobody answered.
func gone(err error) bool {
	return !isAnswer(err) || client.HasCode(err, client.CodeUnavailable) || client.HasCode(err, client.CodeNoLeader)
}

// act does one thing. Everybody has jobs; the rest is one person's each.
func (p *person) act(ctx context.Context, c *client.Client, i int) error {
	if p.rng.IntN(4) > 0 {
		return p.aJob(ctx, c)
	}
	switch i {
	case 0:
		return p.drain(ctx, c)
	case 1:
		return p.token(ctx, c)
	case 2:
		return p.policy(ctx, c)
	case 3:
		return p.settings(ctx, c)
	}
	return p.aJob(ctx, c)
}

// aJob registers a job, changes one, scales it or stops it.
func (p *person) aJob(ctx context.Context, c *client.Client) error {
	id := fmt.Sprintf("%s-%d", p.name, p.rng.IntN(6))
	b := p.jobs[id]
	if b == nil {
		b = &book[jobWord]{}
		p.jobs[id] = b
	}
	if b.open {
		return nil // a second doubt would be one too many
	}
	word := b.acked
	word.rev = max(b.acked.rev, b.asked.rev) + 1
	if b.known && !b.acked.stopped && p.rng.IntN(3) == 0 {
		word.stopped, word.rev = true, b.acked.rev
		b.ask(word)
		_, err := c.Jobs().Stop(ctx, id, nil)
		b.answer(err)
		return err
	}
	word.stopped, word.count = false, 1+p.rng.IntN(5)
	b.ask(word)
	_, err := c.Jobs().Register(ctx, p.aboutJob(id, word), nil)
	b.answer(err)
	return err
}

func (p *person) aboutJob(id string, word jobWord) *client.Job {
	priority := []int{10, 30, 50, 70, 90}[p.rng.IntN(5)]
	memory, cpu := 100*(1+p.rng.IntN(5)), 100
	kill := 50 * time.Millisecond
	config := map[string]any{}
	kind := "service"
	if strings.HasSuffix(id, "5") { // a job stays of the type that it is
		kind, config["run_for"] = "batch", fmt.Sprintf("%dms", 50+p.rng.IntN(2000))
	}
	return &client.Job{
		ID: id, Type: kind, Priority: &priority, Meta: map[string]string{"rev": strconv.Itoa(word.rev)},
		TaskGroups: []*client.TaskGroup{{
			Name: "g", Count: &word.count,
			Tasks: []*client.Task{{
				Name: "main", Driver: "sim", Config: config, KillTimeout: &kill,
				Resources: &client.Resources{MemoryMB: &memory, CPU: &cpu},
			}},
		}},
	}
}

func (p *person) drain(ctx context.Context, c *client.Client) error {
	id := p.load.nodes[p.rng.IntN(len(p.load.nodes))]
	b := p.drains[id]
	if b == nil {
		b = &book[bool]{known: true}
		p.drains[id] = b
	}
	if b.open {
		return nil
	}
	b.ask(p.rng.IntN(4) == 0)
	_, err := c.Nodes().Drain(ctx, id, b.asked, true)
	b.answer(err)
	return err
}

func (p *person) token(ctx context.Context, c *client.Client) error {
	if p.rng.IntN(3) == 0 {
		for accessor, there := range p.tokens {
			if !there {
				continue
			}
			err := c.Operator().TokenDelete(ctx, accessor)
			if err == nil {
				p.tokens[accessor] = false
			} else {
				delete(p.tokens, accessor) // it may be there or not
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

// modules are policies that are no larger than they need to be.
var modules = []string{"default-c.wasm", "default-rust.wasm", "decay-c.wasm", "default-assemblyscript.wasm"}

// policy loads a version, or activates one.
func (p *person) policy(ctx context.Context, c *client.Client) error {
	if len(p.versions) > 0 && !p.active.open && p.rng.IntN(2) == 0 {
		for id := range p.versions { // any
			p.active.ask(id)
			_, err := c.Policies().Activate(ctx, "rules", id)
			p.active.answer(err)
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

func (p *person) settings(ctx context.Context, c *client.Client) error {
	if p.gap.open {
		return nil
	}
	gap := 5 + p.rng.IntN(10)
	conf := &client.SchedulerConfiguration{
		SchedulerAlgorithm: "binpack", PriorityDelta: &gap, Policy: "rules",
		PreemptionConfig: client.PreemptionConfig{SystemSchedulerEnabled: true, SysBatchSchedulerEnabled: true, BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true},
	}
	p.gap.ask(gap)
	_, err := c.Scheduler().Set(ctx, conf, nil)
	p.gap.answer(err)
	return err
}

// check holds a state to what was acknowledged, and takes over what it says where
// nobody could know.
func (l *load) check(sn *state.Snapshot) {
	l.t.Helper()
	for _, p := range l.people {
		p.checkJobs(sn)
		for id, b := range p.drains {
			n := sn.Node(id)
			if n == nil || !b.holds(n.Drain, true) {
				l.t.Errorf("node %s: %+v, want %+v", id, n, b)
				continue
			}
			b.settle(n.Drain, true)
		}
		for accessor, there := range p.tokens {
			if (sn.Token(accessor) != nil) != there {
				l.t.Errorf("token %s: it is there: %t, want %t", accessor, !there, there)
			}
		}
		for id := range p.versions {
			if sn.PolicyVersion(id) == nil {
				l.t.Errorf("version %s of a policy is lost", id)
			}
		}
		if s := sn.PolicyState("rules"); s != nil || p.active.known {
			active := ""
			if s != nil {
				active = s.Active
			}
			if p.active.known || p.active.open {
				if !p.active.holds(active, active != "") {
					l.t.Errorf("active is %q, want %+v", active, p.active)
				}
				p.active.settle(active, active != "")
			}
		}
		if p.gap.known || p.gap.open {
			gap, set := gapOf(sn)
			if !p.gap.holds(gap, set) {
				l.t.Errorf("the delta is %d, want %+v", gap, p.gap)
			}
			p.gap.settle(gap, set)
		}
	}
}

// gapOf is the scheduler's delta, where one was set.
func gapOf(sn *state.Snapshot) (gap int, set bool) {
	if d := sn.Config().PriorityDelta; d != nil {
		return int(*d), true
	}
	return 0, false
}

// isAnswer is whether an error is what a server said.
func isAnswer(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.StatusCode != 0
}

func (p *person) checkJobs(sn *state.Snapshot) {
	t := p.load.t
	t.Helper()
	for id, b := range p.jobs {
		key := model.JobKey{Namespace: "default", ID: id}
		j := sn.Job(key)
		word := jobWord{}
		if j != nil {
			rev, err := strconv.Atoi(j.Meta["rev"])
			if err != nil {
				t.Fatal(err)
			}
			word = jobWord{rev: rev, count: j.Groups[0].Count, stopped: j.Stopped}
		}
		if !b.holds(word, j != nil) {
			t.Errorf("job %s: %+v (there: %t), want %+v", id, word, j != nil, *b)
		}
		b.settle(word, j != nil)
		last := uint64(0)
		for i, v := range sn.JobVersions(key) {
			if i > 0 && v.Version >= last {
				t.Errorf("job %s: version %d comes after %d", id, v.Version, last)
			}
			last = v.Version
		}
	}
}
