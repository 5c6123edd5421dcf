package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/internal/ring"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// Bounds of shadow runs.
const (
	shadowQueue = 64  // decisions that may wait for a candidate
	shadowKept  = 128 // differences of a run that are kept in memory
	// shadowRest is how long a shadow run rests for each moment that it worked: it
	// uses at most a quarter of one processor.
	shadowRest = 3
	// shadowSample is the part of decisions that is looked at while the queue is
	// more than half full: one in so many.
	shadowSample = 4
)

// ShadowStatus is what a shadow run has shown on one server since it began there.
type ShadowStatus struct {
	Policy, Version string
	Since           int64 // Unix nanoseconds
	Decisions       int64 // that were compared: the sum of the next three
	Agreed          int64
	Differed        int64
	Failed          int64 // the candidate was at fault
	Skipped         int64 // not compared: the candidate was busy
	Differences     []*ShadowDifference
}

// ShadowDifference is a decision that a candidate would have made otherwise.
type ShadowDifference struct {
	Time      int64  // Unix nanoseconds that both decisions were made with
	Index     uint64 // of the snapshot that both were made on
	EvalID    string
	Namespace string
	JobID     string
	Policy    string
	Active    ShadowChoice
	Shadow    ShadowChoice
}

// ShadowChoice is what one side of a comparison decides for an evaluation.
type ShadowChoice struct {
	Version  string
	Places   []string // allocations by name, each with its node: web.app[0]@n1; ascending
	Victims  []string // allocation ids, ascending
	Why      string   // who the victims are and what they lose; why something found no place; the fault
	Fault    bool
	Calls    int
	Fuel     uint64
	Duration time.Duration
}

// shadows lets candidates decide what the active versions have decided, beside
// everything: workers put their decisions into a queue that never blocks, and one
// goroutine plans each of them again, on the same snapshot at the same time, under
// a set in which the candidate stands in for the active version. What it plans is
// compared and thrown away.
//
// A snapshot is a few pointers, so that a queue of them costs little; a candidate
// that is slower than the workers sees a sample.
type shadows struct {
	clock   clock.Clock
	records *policyRecords
	queue   chan shadowTask
	running atomic.Int32 // runs

	mu       sync.Mutex
	versions map[string]*policy.Version // in force, by name
	fallback *policy.Version
	runs     map[string]*shadowRun // by the policy's name
	offered  int
}

// shadowRun is one candidate.
type shadowRun struct {
	candidate *policy.Version // held by set
	set       *policy.Set
	status    ShadowStatus
	newest    ring.Ring[*ShadowDifference]
}

// shadowTask is a decision to be compared.
type shadowTask struct {
	decision scheduler.Decision
	policy   string
	active   ShadowChoice
}

func newShadows(c clock.Clock, r *policyRecords) *shadows {
	return &shadows{clock: c, records: r, queue: make(chan shadowTask, shadowQueue), runs: map[string]*shadowRun{}}
}

// inForce tells what is in force from now on, by name.
func (s *shadows) inForce(versions map[string]*policy.Version, fallback *policy.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions, s.fallback = versions, fallback
	for _, r := range s.runs {
		r.stand(s)
	}
}

// follow makes the runs those of the given candidates, by the policy's name.
func (s *shadows) follow(candidates map[string]*policy.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, r := range s.runs {
		if candidates[name] != r.candidate {
			r.set.Unpin()
			delete(s.runs, name)
		}
	}
	for name, v := range candidates {
		if s.runs[name] == nil {
			r := &shadowRun{candidate: v, newest: ring.New[*ShadowDifference](shadowKept)}
			r.status = ShadowStatus{Policy: name, Version: v.ID, Since: s.clock.Now().UnixNano()}
			r.stand(s)
			s.runs[name] = r
		}
	}
	s.running.Store(int32(len(s.runs)))
}

// stand makes the set in which the candidate stands in for what is in force under
// its name. s.mu is held.
func (r *shadowRun) stand(s *shadows) {
	versions := maps.Clone(s.versions)
	versions[r.status.Policy] = r.candidate
	set, err := policy.NewSetWithFallback(s.fallback, slices.Collect(maps.Values(versions))...)
	if err != nil {
		panic("server: " + err.Error()) // names of a map are unique
	}
	if r.set != nil {
		r.set.Unpin()
	}
	r.set = set
}

// close gives every candidate up.
func (s *shadows) close() { s.follow(nil) }

// offer puts a decision into the queue, where a candidate is to see it. It never
// blocks.
func (s *shadows) offer(d scheduler.Decision, record *PolicyDecision) {
	if s.running.Load() == 0 {
		return
	}
	name := decidedUnder(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[name]
	if r == nil {
		return
	}
	s.offered++
	if len(s.queue) > shadowQueue/2 && s.offered%shadowSample != 0 {
		r.status.Skipped++
		return
	}
	select {
	case s.queue <- shadowTask{d, name, choiceOf(d.Snap, d.Outcome, record.Version, record.Uses)}:
	default:
		r.status.Skipped++
	}
}

// decidedUnder is the name under which a policy decided for a job.
func decidedUnder(d scheduler.Decision) string {
	job := d.Snap.Job(d.Eval.JobKey())
	switch {
	case job == nil:
		return ""
	case job.Policy != "":
		return job.Policy
	case d.Snap.Config().Policy != "":
		return d.Snap.Config().Policy
	}
	return policy.DefaultName
}

// choiceOf is one side of a comparison.
func choiceOf(snap *state.Snapshot, out *scheduler.Outcome, version string, uses []PolicyUse) ShadowChoice {
	c := ShadowChoice{Version: version, Victims: victimsOf(out), Fault: out.Fault != nil}
	for i := range out.Plan.Groups {
		for _, a := range out.Plan.Groups[i].Placements {
			c.Places = append(c.Places, model.AllocName(a.Group, a.Index, a.Incarnation)+"@"+a.NodeID)
		}
	}
	slices.Sort(c.Places)
	for _, u := range uses {
		c.Calls += u.Calls
		c.Fuel += u.Fuel
		c.Duration += u.Duration
	}
	c.Why = strings.Join(append(losses(snap, c.Victims, out.Plan.Now), whyNot(out)...), "; ")
	return c
}

// whyNot is why something found no place, group by group, and the fault.
func whyNot(out *scheduler.Outcome) (words []string) {
	if out.Fault != nil {
		words = append(words, out.Fault.Error())
	}
	for _, group := range slices.Sorted(maps.Keys(out.Failed)) {
		words = append(words, fmt.Sprintf("%s: %d without a place: %s", group, out.Queued[group], out.Failed[group]))
	}
	return words
}

// victimsTold is how many victims a comparison describes.
const victimsTold = 8

// losses says who victims are, and how much work each loses.
func losses(snap *state.Snapshot, victims []string, now int64) (words []string) {
	for i, id := range victims {
		if i == victimsTold {
			return append(words, fmt.Sprintf("%d more", len(victims)-i))
		}
		a := snap.Alloc(id)
		if a == nil {
			continue
		}
		lost := time.Duration(a.Group.LostWork(a.Age(now))).Round(time.Second)
		words = append(words, fmt.Sprintf("%s (priority %d, loses %v)", model.AllocName(a.Group, a.Index, a.Incarnation), a.Job.Priority, lost))
	}
	return words
}

// agrees is whether both sides place and evict the same.
func (c *ShadowChoice) agrees(o *ShadowChoice) bool {
	return slices.Equal(c.Victims, o.Victims) && slices.Equal(c.Places, o.Places)
}

// run compares decisions until the context ends.
func (s *shadows) run(ctx context.Context) {
	c := &comparer{shadows: s}
	c.scheduler = scheduler.New(scheduler.Config{
		// What the candidate would remember of groups that failed stands on plans of
		// its own, which nobody applied.
		Policies: c, Forget: true,
		Observe: func(scheduler.Decision) {}, // so that calls are counted
	})
	for {
		select {
		case task := <-s.queue:
			began := s.clock.Now()
			c.compare(task)
			if worked := clock.Since(s.clock, began); worked > 0 {
				clock.Sleep(ctx, s.clock, shadowRest*worked)
			}
		case <-ctx.Done():
			return
		}
	}
}

// comparer plans with candidates, on the one goroutine that runs it.
type comparer struct {
	*shadows
	scheduler *scheduler.Scheduler
	set       *policy.Set // of the task at hand, pinned
}

// Pin is the set of the task at hand.
func (c *comparer) Pin() *policy.Set { return c.set.Pin() }

// compare lets a candidate decide a task.
func (c *comparer) compare(t shadowTask) {
	c.mu.Lock()
	r := c.runs[t.policy]
	if r == nil {
		c.mu.Unlock()
		return // the run ended
	}
	c.set = r.set.Pin()
	c.mu.Unlock()
	defer c.set.Unpin()
	d := &t.decision
	out, err := c.scheduler.Process(d.Eval, d.Snap, d.Outcome.Plan.Now)
	if err != nil {
		return // the job's policy is not loaded any more
	}
	shadow := choiceOf(d.Snap, out, r.candidate.ID, PolicyUses(out.Calls))
	c.mu.Lock()
	defer c.mu.Unlock()
	r.status.Decisions++
	switch {
	case shadow.Fault:
		r.status.Failed++
	case shadow.agrees(&t.active):
		r.status.Agreed++
		return
	default:
		r.status.Differed++
	}
	diff := &ShadowDifference{
		Time: d.Outcome.Plan.Now, Index: d.Snap.Index(), EvalID: d.Eval.ID, Namespace: d.Eval.Namespace,
		JobID: d.Eval.JobID, Policy: t.policy, Active: t.active, Shadow: shadow,
	}
	r.newest.Add(diff)
	c.records.keep(topicPolicyShadows, diff.Index, diff)
}

// status is what a run has shown so far, its differences the newest first; nil
// where there is none.
func (s *shadows) status(name string) *ShadowStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[name]
	if r == nil {
		return nil
	}
	st := r.status
	st.Differences = slices.Collect(r.newest.Backward)
	return &st
}

// followShadows makes the shadow runs those that the state asks for, as far as
// their versions are ready here.
func (p *policies) followShadows(states []*model.PolicyState) {
	candidates := map[string]*policy.Version{}
	p.mu.Lock()
	for _, s := range states {
		if v := p.opened[s.Shadow]; v != nil && !p.closed {
			candidates[s.Name] = v
		}
	}
	p.mu.Unlock()
	p.shadows.follow(candidates)
}
