package policymgr

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
	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// Limits of shadow runs.
const (
	maxShadowQueue = 64  // decisions that may wait for a candidate
	maxDifferences = 128 // differences of a run that are held in memory
	// shadowRest is how many times as long as it planned a shadow run sleeps, so that it
	// uses at most a quarter of one processor.
	shadowRest = 3
	// shadowSample is the sampling of decisions while the queue is more than half full: one
	// in so many.
	shadowSample = 4
	// shadowReportInterval is how often servers report the sums of shadow runs.
	shadowReportInterval = 10 * time.Second
	// maxVictims is how many victims a comparison describes.
	maxVictims = 8
)

// ShadowStatus is the result of a shadow run on one server since it started there.
type ShadowStatus struct {
	Policy, Version string
	Since           int64 // Unix nanoseconds
	Decisions       int64 // that were compared: the sum of the next three
	Agreed          int64
	Differed        int64
	Failed          int64 // the candidate was at fault
	Skipped         int64 // not compared, because the candidate was busy
	Differences     []*ShadowDifference
}

// A ShadowDifference is a decision that a candidate would have made differently.
type ShadowDifference struct {
	Time      int64  // of both plans, in Unix nanoseconds
	Index     uint64 // of the snapshot that both were planned on
	EvalID    string
	Namespace string
	JobID     string
	Policy    string
	Active    ShadowChoice
	Shadow    ShadowChoice
}

// A ShadowChoice is the decision of one side of a comparison for an evaluation.
type ShadowChoice struct {
	Version  string
	Places   []string // allocations by name and node, such as web.app[0]@n1; ascending
	Victims  []string // allocation IDs, ascending
	Why      string   // the victims and their lost work, failed placements, and the fault
	Fault    bool
	Calls    int
	Fuel     uint64
	Duration time.Duration
}

// shadows plans decisions of the active versions again with candidates. Workers put their
// decisions into a queue without blocking. One goroutine plans each of them on the same
// snapshot and at the same time, with a set in which the candidate replaces the active
// version; it compares the plans and discards its own.
//
// A snapshot is a few pointers, so that a queue of them is cheap. A candidate that is
// slower than the workers gets a sample of the decisions.
type shadows struct {
	clock   clock.Clock
	history *decisionHistory
	queue   chan shadowTask
	running atomic.Int32 // number of runs

	mu       sync.Mutex
	versions map[string]*policy.Version // active, by name
	fallback *policy.Version
	runs     map[string]*shadowRun // by name of the policy
	offered  int
	pending  map[string]*model.ShadowSums // by version: not reported to the cluster yet
	reported time.Time                    // when sums were reported last
}

// shadowRun is the run of one candidate.
type shadowRun struct {
	candidate *policy.Version // referenced by set
	set       *policy.Set
	status    ShadowStatus
	newest    ring.Ring[*ShadowDifference]
}

// shadowTask is a decision to compare.
type shadowTask struct {
	decision scheduler.Decision
	policy   string
	active   ShadowChoice
}

func newShadows(c clock.Clock, h *decisionHistory) *shadows {
	return &shadows{clock: c, history: h, queue: make(chan shadowTask, maxShadowQueue), runs: map[string]*shadowRun{}, pending: map[string]*model.ShadowSums{}}
}

// setActive sets the active versions, by name.
func (s *shadows) setActive(versions map[string]*policy.Version, fallback *policy.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions, s.fallback = versions, fallback
	for _, r := range s.runs {
		r.updateSet(versions, fallback)
	}
}

// setCandidates starts and ends runs, so that there is one for each candidate. The key is
// the name of the policy.
func (s *shadows) setCandidates(candidates map[string]*policy.Version) {
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
			r := &shadowRun{candidate: v, newest: ring.New[*ShadowDifference](maxDifferences)}
			r.status = ShadowStatus{Policy: name, Version: v.ID, Since: s.clock.Now().UnixNano()}
			r.updateSet(s.versions, s.fallback)
			s.runs[name] = r
		}
	}
	s.running.Store(int32(len(s.runs)))
}

// updateShadows sets the candidates to those of the state that are opened here.
func (m *Manager) updateShadows(states []*model.PolicyState) {
	candidates := map[string]*policy.Version{}
	for _, s := range states {
		if v := m.versions.acquire(s.Shadow); v != nil {
			defer v.ReleaseRef() // by then the set of the run holds a reference of its own
			candidates[s.Name] = v
		}
	}
	m.shadows.setCandidates(candidates)
}

// updateSet makes the set in which the candidate replaces the active version.
func (r *shadowRun) updateSet(active map[string]*policy.Version, fallback *policy.Version) {
	versions := maps.Clone(active)
	versions[r.status.Policy] = r.candidate
	set, err := policy.NewSetWithFallback(fallback, slices.Collect(maps.Values(versions))...)
	if err != nil {
		panic("policymgr: " + err.Error()) // names of a map are unique
	}
	if r.set != nil {
		r.set.Unpin()
	}
	r.set = set
}

// close ends all runs.
func (s *shadows) close() { s.setCandidates(nil) }

// offer queues a decision if its policy has a candidate. It never blocks.
func (s *shadows) offer(d scheduler.Decision, decision *Decision) {
	if s.running.Load() == 0 {
		return
	}
	name := d.Snap.Config().PolicyOf(d.Snap.Job(d.Eval.JobKey()))
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[name]
	if r == nil {
		return
	}
	s.offered++
	if len(s.queue) > maxShadowQueue/2 && s.offered%shadowSample != 0 {
		r.status.Skipped++
		return
	}
	select {
	case s.queue <- shadowTask{d, name, newChoice(d.Snap, d.Outcome, decision.Version, decision.Uses)}:
	default:
		r.status.Skipped++
	}
}

// newChoice returns one side of a comparison.
func newChoice(snap *state.Snapshot, out *scheduler.Outcome, version string, uses []Use) ShadowChoice {
	c := ShadowChoice{Version: version, Victims: victims(out), Fault: out.Fault != nil}
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
	c.Why = strings.Join(append(describeVictims(snap, c.Victims, out.Plan.Now), describeFailures(out)...), "; ")
	return c
}

// describeFailures returns the fault and the reasons of failed placements, group by group.
func describeFailures(out *scheduler.Outcome) (list []string) {
	if out.Fault != nil {
		list = append(list, out.Fault.Error())
	}
	for _, group := range slices.Sorted(maps.Keys(out.Failed)) {
		list = append(list, fmt.Sprintf("%s: %d not placed: %s", group, out.Queued[group], out.Failed[group]))
	}
	return list
}

// describeVictims returns the name, priority and lost work of each victim.
func describeVictims(snap *state.Snapshot, victims []string, now int64) (list []string) {
	for i, id := range victims {
		if i == maxVictims {
			return append(list, fmt.Sprintf("%d more", len(victims)-i))
		}
		a := snap.Alloc(id)
		if a == nil {
			continue
		}
		lost := time.Duration(a.Group.LostWork(a.Age(now))).Round(time.Second)
		list = append(list, fmt.Sprintf("%s (priority %d, loses %v)", model.AllocName(a.Group, a.Index, a.Incarnation), a.Job.Priority, lost))
	}
	return list
}

// sumsOf returns the effects that a plan has if all of it is committed.
func sumsOf(snap *state.Snapshot, p *model.Plan) (s model.PolicySums) {
	charged := map[int32]int{}
	for i := range p.Groups {
		s.Placed += int64(len(p.Groups[i].Placements))
		for _, e := range p.Groups[i].Evictions {
			if a := snap.Alloc(e.AllocID); a != nil {
				s.AddVictim(a, p.Now, snap.OverrunsBudget(a, p.Now, charged))
			}
		}
	}
	return s
}

// addPending adds a comparison to the sums that were not reported yet. s.mu is held.
func (s *shadows) addPending(version string, sums *model.ShadowSums) {
	if s.pending[version] == nil {
		s.pending[version] = &model.ShadowSums{}
	}
	s.pending[version].Add(sums)
}

// takePending returns the sums that were not reported yet, ascending by version,
// and clears them. It returns none before shadowReportInterval has passed since
// the last ones, and the time until it must be called again; 0 without a shadow run.
func (s *shadows) takePending() (list []*replication.ReportShadow, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 && len(s.runs) == 0 {
		return nil, 0
	}
	if left := shadowReportInterval - clock.Since(s.clock, s.reported); left > 0 {
		return nil, left
	}
	s.reported = s.clock.Now()
	for _, version := range slices.Sorted(maps.Keys(s.pending)) {
		list = append(list, &replication.ReportShadow{Version: version, Sums: *s.pending[version]})
	}
	clear(s.pending)
	return list, shadowReportInterval
}

// reportShadows writes the sums of a server's comparisons into the log, and returns the
// time until it must be called again; 0 without a shadow run. Sums are lost if the write
// fails: if they were written nevertheless, a repetition would count them twice.
func reportShadows(ctx context.Context, m *Manager) (again time.Duration) {
	if m.cfg.Store.Snapshot().Meta().Version < actorsFrom {
		return 0
	}
	list, again := m.shadows.takePending()
	for _, r := range list {
		if _, err := m.apply(ctx, r); err != nil {
			m.cfg.Logger.DebugContext(ctx, "failed to report shadow run", "version", r.Version, "err", err)
		}
	}
	return again
}

// agrees reports whether both sides place and evict the same.
func (c *ShadowChoice) agrees(o *ShadowChoice) bool {
	return slices.Equal(c.Victims, o.Victims) && slices.Equal(c.Places, o.Places)
}

// run compares decisions until ctx ends.
func (s *shadows) run(ctx context.Context) {
	c := &comparer{shadows: s}
	c.scheduler = lookahead.NewScheduler(scheduler.Config{
		// The scheduler must not cache failed groups: they failed with plans that were never
		// applied.
		Policies: c, Forget: true,
		Observe: func(scheduler.Decision) {}, // so that calls are counted
	})
	for {
		select {
		case task := <-s.queue:
			started := s.clock.Now()
			c.compare(task)
			if worked := clock.Since(s.clock, started); worked > 0 {
				clock.Sleep(ctx, s.clock, shadowRest*worked)
			}
		case <-ctx.Done():
			return
		}
	}
}

// comparer plans with candidates. It is used by one goroutine only.
type comparer struct {
	*shadows
	scheduler *scheduler.Scheduler
	set       *policy.Set // of the current task, pinned
}

// Pin returns the set of the current task.
func (c *comparer) Pin() *policy.Set { return c.set.Pin() }

// compare plans a task with its candidate and records the difference.
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
		return // the policy of the job is not loaded any more
	}
	shadow := newChoice(d.Snap, out, r.candidate.ID, Uses(out.Calls))
	sums := model.ShadowSums{Compared: 1, Active: sumsOf(d.Snap, d.Outcome.Plan), Shadow: sumsOf(d.Snap, out.Plan)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addPending(r.candidate.ID, &sums)
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
	c.history.enqueue(topicShadows, diff.Index, diff)
}

// status returns the result of a run so far, with its differences, the newest first; nil
// if there is no run.
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
