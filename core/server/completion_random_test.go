package server

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/fsm"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A completionModel applies random entries to a state, and plans, verifies and commits evaluations
// between them. It derives from the registrations alone which completed instances are done.
type completionModel struct {
	t     *rapid.T
	store *state.Store
	fsm   *fsm.FSM
	sched *scheduler.Scheduler
	index uint64
	now   int64
	ids   int

	evals  []*model.Evaluation // to be processed
	flight []*plannedEval      // planned or verified, and not committed

	texts  map[versionOf]string // what an instance of a group is
	spans  map[versionOf]int    // versions of a group of which instances continue
	runs   map[versionOf]int    // versions of a job between stops; group is ""
	next   int
	placed map[string]bool // allocations that were seen
}

// A versionOf is a version of a group of a job. A purged job that is registered again has
// another index of creation.
type versionOf struct {
	created, version uint64
	group            string
}

type plannedEval struct {
	eval     *model.Evaluation
	plan     *model.Plan
	verified *planner.Verification
}

var completionKinds = []model.JobType{model.JobBatch, model.JobSysBatch, model.JobService, model.JobBatch}

func newCompletionModel(t *rapid.T, version uint32) *completionModel {
	m := &completionModel{
		t: t, store: state.New(), now: 1000, texts: map[versionOf]string{}, spans: map[versionOf]int{},
		runs: map[versionOf]int{}, placed: map[string]bool{},
	}
	m.fsm = fsm.New(&fsm.Config{Store: m.store, Versions: replication.Ours(), Logger: slog.New(slog.DiscardHandler)})
	m.sched = scheduler.New(scheduler.Config{
		Policies: coretest.Policies(),
		NewID:    func(*model.Group, int, int) string { return m.id("alloc") },
	})
	m.do(&replication.Bootstrap{ClusterID: "c", Version: version, Key: [32]byte{1}})
	m.do(&replication.SetConfig{Config: coretest.AllPreempt()})
	for i := range 3 {
		m.do(&replication.RegisterNodes{Nodes: []*model.Node{coretest.Node(fmt.Sprint("n", i), 60, 60, 0)}})
	}
	return m
}

func (m *completionModel) id(what string) string {
	m.ids++
	return fmt.Sprintf("%s-%d", what, m.ids)
}

func (m *completionModel) do(c replication.Command) *replication.Result {
	m.t.Helper()
	m.index++
	m.now += rapid.Int64Range(-40, 60).Draw(m.t, "time")
	e := &replication.Entry{Time: m.now, Command: c}
	r, ok := m.fsm.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: codec.Encode(e)}).(*replication.Result)
	if !ok {
		m.t.Fatalf("%T halts", c)
	}
	for _, e := range r.Evals {
		if e.Status == model.EvalPending {
			m.evals = append(m.evals, e)
		}
	}
	m.checkPlaced()
	return r
}

func (m *completionModel) snap() *state.Snapshot { return m.store.Snapshot() }

// spec draws a specification. Few values make returns to earlier ones likely.
func (m *completionModel) spec(n int) *model.Job {
	j := &model.Job{
		Namespace: "default", ID: fmt.Sprint("j", n), Type: completionKinds[n], SubmitTime: m.now,
		Priority: int32(rapid.SampledFrom([]int{50, 60}).Draw(m.t, "priority")),
	}
	for _, name := range []string{"a", "b"} {
		if name == "b" && rapid.Bool().Draw(m.t, "one group") {
			break
		}
		count := rapid.IntRange(0, 2).Draw(m.t, "count")
		if j.Type.PerNode() {
			count = min(count, 1)
		}
		g := &model.Group{
			Name: name, Count: count, Resources: model.Resources{"cpu": int64(rapid.IntRange(1, 2).Draw(m.t, "cpu"))},
			Labels: map[string]string{"x": fmt.Sprint(rapid.IntRange(0, 1).Draw(m.t, "label"))},
			Tasks:  []*model.Task{{Name: "t", Driver: "exec", Config: fmt.Appendf(nil, `{"command":"%d"}`, rapid.IntRange(0, 1).Draw(m.t, "task"))}},
		}
		if n == 0 {
			g.Checkpoint = 1
		}
		if n == 3 && rapid.Bool().Draw(m.t, "disconnect") {
			g.Disconnect = &model.Disconnect{Replace: true}
		}
		if rapid.IntRange(0, 3).Draw(m.t, "constraint") == 0 {
			g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: "!=", Value: "n0"}}
		}
		j.Groups = append(j.Groups, g)
	}
	return j
}

func (m *completionModel) eval(j *model.Job, trigger model.Trigger) *model.Evaluation {
	return &model.Evaluation{ID: m.id("eval"), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority, TriggeredBy: trigger}
}

func (m *completionModel) register(j *model.Job) {
	old := m.snap().Job(j.Key())
	r := m.do(&replication.RegisterJob{Job: j, Eval: m.eval(j, model.TriggerJobRegister)})
	if r.Err != nil {
		m.t.Fatal(r.Err)
	}
	if now := m.snap().Job(j.Key()); now != old {
		m.learn(old, now)
	}
}

// learn records which instances of a version continue in the next one.
func (m *completionModel) learn(old, now *model.Job) {
	m.next++
	whole := versionOf{now.CreateIndex, now.Version, ""}
	before := func(group string) versionOf { return versionOf{old.CreateIndex, old.Version, group} }
	isOld := m.snap().Meta().Version < apply.RerunFrom
	m.runs[whole] = m.next
	if old != nil && (!old.Stopped || isOld) {
		m.runs[whole] = m.runs[before("")]
	}
	for _, g := range now.Groups {
		m.next++
		at := versionOf{now.CreateIndex, now.Version, g.Name}
		m.texts[at] = fmt.Sprint(g.Resources, string(g.Tasks[0].Config))
		switch {
		case isOld: // completed instances never run again
			m.spans[at] = -int(now.CreateIndex)
		case old != nil && !old.Stopped && m.texts[before(g.Name)] == m.texts[at]:
			m.spans[at] = m.spans[before(g.Name)]
		default:
			m.spans[at] = m.next
		}
	}
}

func (m *completionModel) stop(key model.JobKey, purge bool) {
	old := m.snap().Job(key)
	if old == nil {
		return
	}
	m.do(&replication.StopJob{Key: key, Purge: purge, Eval: m.eval(old, model.TriggerJobStop)})
	if now := m.snap().Job(key); now != nil && now != old {
		at := func(j *model.Job, group string) versionOf { return versionOf{j.CreateIndex, j.Version, group} }
		m.runs[at(now, "")] = m.runs[at(old, "")]
		for _, g := range now.Groups {
			m.texts[at(now, g.Name)], m.spans[at(now, g.Name)] = m.texts[at(old, g.Name)], m.spans[at(old, g.Name)]
		}
	}
}

func (m *completionModel) span(a *model.Allocation) int {
	return m.spans[versionOf{a.Job.CreateIndex, a.Job.Version, a.Group.Name}]
}

// isDone is independent of model.Allocation.IsDone.
func (m *completionModel) isDone(a *model.Allocation, j *model.Job) bool {
	if a.Client != model.ClientComplete || a.Desired != model.DesiredRun || j.Stopped || j.CreateIndex != a.Job.CreateIndex {
		return false
	}
	span, found := m.spans[versionOf{j.CreateIndex, j.Version, a.Group.Name}]
	return found && span == m.span(a)
}

func sameInstance(a, b *model.Allocation) bool {
	if a.Job.Key() != b.Job.Key() || a.Group.Name != b.Group.Name {
		return false
	}
	if a.Job.Type.PerNode() {
		return a.NodeID == b.NodeID
	}
	return a.Index == b.Index
}

// checkPlaced checks each new allocation: its instance neither runs nor is done.
func (m *completionModel) checkPlaced() {
	m.t.Helper()
	for a := range m.snap().Allocs() {
		if m.placed[a.ID] {
			continue
		}
		m.placed[a.ID] = true
		saved := false
		for _, other := range m.snap().AppendJobAllocs(nil, a.Job.Key()) {
			if other == a || !sameInstance(a, other) {
				continue
			}
			if other.Live() && a.Group.Disconnect == nil && other.Group.Disconnect == nil {
				m.t.Fatalf("%s runs beside %s", describeAlloc(a), describeAlloc(other))
			}
			if m.isDone(other, a.Job) {
				m.t.Fatalf("%s is placed although %s is done", describeAlloc(a), describeAlloc(other))
			}
			saved = saved || m.runs[versionOf{a.Job.CreateIndex, a.Job.Version, ""}] == m.runs[versionOf{other.Job.CreateIndex, other.Job.Version, ""}]
		}
		if a.SavedWork > 0 && !saved {
			m.t.Fatalf("%s continues work of an earlier run: %d", describeAlloc(a), a.SavedWork)
		}
	}
}

func describeAlloc(a *model.Allocation) string {
	return fmt.Sprintf("%s (%s, version %d, %s, %s on %s)", a.ID, model.AllocName(a.Group, a.Index, a.Incarnation), a.Job.Version, a.Desired, a.Client, a.NodeID)
}

// planNext plans an evaluation on the present state.
func (m *completionModel) planNext(at int) {
	e := m.evals[at]
	for _, f := range m.flight {
		if f.eval.JobKey() == e.JobKey() {
			return // the broker delivers one evaluation of a job at a time
		}
	}
	m.evals = slices.Delete(m.evals, at, at+1)
	out, err := m.sched.Process(e, m.snap(), m.now)
	if err != nil {
		m.t.Fatal(err)
	}
	if out.RecheckAt > 0 || len(out.Failed) > 0 {
		m.later(e)
	}
	if !out.Plan.Empty() {
		m.flight = append(m.flight, &plannedEval{eval: e, plan: out.Plan})
	}
}

// later processes an evaluation of the job again.
func (m *completionModel) later(e *model.Evaluation) {
	next := *e
	next.ID, next.TriggeredBy = m.id("eval"), model.TriggerRecheck
	m.evals = append(m.evals, &next)
}

// advance verifies a plan, or commits a verified one.
func (m *completionModel) advance(at int) {
	f := m.flight[at]
	if f.verified == nil {
		var scratch planner.Scratch
		v, err := planner.Verify(m.snap(), f.plan, m.now, &feasible.Verifier{}, &scratch)
		if err != nil {
			m.t.Fatal(err)
		}
		f.verified = &v
		return
	}
	m.flight = slices.Delete(m.flight, at, at+1)
	v := f.verified
	if len(v.Rejected) > 0 {
		m.later(f.eval)
	}
	if v.Empty() {
		return
	}
	r := m.do(&replication.ApplyPlans{Batch: &apply.Batch{Now: m.now, Plans: []apply.BatchPlan{{Plan: v.Plan, Groups: v.Committed}}}})
	if len(r.Dropped) > 0 {
		m.later(f.eval)
	}
}

// report reports the status of an allocation that its node runs.
func (m *completionModel) report() {
	var active []*model.Allocation
	for a := range m.snap().Allocs() {
		if n := m.snap().Node(a.NodeID); !a.Client.Terminal() && n.Status != model.NodeDown {
			active = append(active, a)
		}
	}
	if len(active) == 0 {
		return
	}
	a := rapid.SampledFrom(active).Draw(m.t, "alloc")
	u := apply.ClientUpdate{AllocID: a.ID, Status: model.ClientComplete, Started: true, StartTime: m.now - 20}
	if a.Started {
		u.StartTime = a.StartTime
	}
	if a.Desired == model.DesiredRun {
		u.Status = rapid.SampledFrom([]model.ClientStatus{model.ClientRunning, model.ClientComplete, model.ClientComplete, model.ClientFailed}).Draw(m.t, "status")
		if u.Status == model.ClientComplete && rapid.IntRange(0, 5).Draw(m.t, "restored") == 0 {
			u.Text = "it was stopped before the state was restored"
		}
	}
	m.do(&replication.UpdateAllocs{Updates: []apply.ClientUpdate{u}})
}

func (m *completionModel) changeNode() {
	ready, down, yes, no := model.NodeReady, model.NodeDown, true, false
	m.do(&replication.ChangeNodes{
		IDs: []string{fmt.Sprint("n", rapid.IntRange(0, 2).Draw(m.t, "node"))},
		Change: rapid.SampledFrom([]apply.NodeChange{
			{Status: &down}, {Status: &ready}, {Status: &ready}, {Drain: &yes}, {Drain: &no}, {Drain: &no},
		}).Draw(m.t, "change"),
	})
}

// collect deletes what the leader may propose for deletion.
func (m *completionModel) collect() {
	c := &replication.Collect{}
	for a := range m.snap().Allocs() {
		pending := slices.ContainsFunc(m.evals, func(e *model.Evaluation) bool { return e.JobKey() == a.Job.Key() }) ||
			slices.ContainsFunc(m.flight, func(f *plannedEval) bool { return f.eval.JobKey() == a.Job.Key() })
		// Completed services are collected before apply.RerunFrom, but the leader proposes none.
		isOld := m.snap().Meta().Version < apply.RerunFrom
		if job := m.snap().Job(a.Job.Key()); a.Client.Terminal() && !pending && (!isOld || job == nil || !m.isDone(a, job)) {
			c.Allocs = append(c.Allocs, a.ID)
		}
	}
	m.do(c)
}

// quiesce makes all nodes ready, and processes evaluations until none is left.
func (m *completionModel) quiesce() {
	ready, no := model.NodeReady, false
	for len(m.flight) > 0 {
		m.advance(0)
	}
	for n := range 3 {
		m.do(&replication.ChangeNodes{IDs: []string{fmt.Sprint("n", n)}, Change: apply.NodeChange{Status: &ready, Drain: &no}})
	}
	m.now += 3600e9 // delays of retries end
	for round := 0; len(m.evals) > 0; round++ {
		if round == 200 {
			m.t.Fatalf("evaluations do not end: %+v", m.evals[0])
		}
		m.planNext(0)
		for len(m.flight) > 0 {
			m.advance(0)
		}
	}
	m.now += 1000
	m.checkComplete()
}

// checkComplete checks that each instance runs once, or is done.
func (m *completionModel) checkComplete() {
	for j := range m.snap().Jobs() {
		allocs := m.snap().AppendJobAllocs(nil, j.Key())
		live, done := map[string]int{}, map[string]int{}
		key := func(group, node string, index int) string {
			if j.Type.PerNode() {
				return group + " on " + node
			}
			return fmt.Sprint(group, index)
		}
		want := map[string]bool{}
		for _, g := range j.Groups {
			for i := range g.Count {
				if !j.Type.PerNode() {
					want[key(g.Name, "", i)] = true
					continue
				}
				for n := range m.snap().Nodes() {
					if len(g.Constraints) == 0 || n.ID != "n0" {
						want[key(g.Name, n.ID, 0)] = true
					}
				}
			}
		}
		for _, a := range allocs {
			if a.Live() {
				live[key(a.Group.Name, a.NodeID, a.Index)]++
			}
			if m.isDone(a, j) {
				done[key(a.Group.Name, a.NodeID, a.Index)]++
			}
		}
		describe := func(what string) {
			text := ""
			for _, a := range allocs {
				text += "\n  " + describeAlloc(a)
			}
			m.t.Fatalf("job %s at version %d (stopped: %t): %s%s", j.ID, j.Version, j.Stopped, what, text)
		}
		for k, n := range live {
			if n > 1 || j.Stopped || !want[k] || done[k] > 0 {
				describe(fmt.Sprintf("instance %s runs %d times (required: %t, completed %d times)", k, n, want[k] && !j.Stopped, done[k]))
			}
		}
		for k := range want {
			if !j.Stopped && live[k] == 0 && done[k] == 0 {
				describe(fmt.Sprintf("instance %s does not run", k))
			}
			if done[k] > 1 {
				describe(fmt.Sprintf("instance %s completed %d times", k, done[k]))
			}
		}
	}
}

// A completed instance runs again if and only if its tasks or resources changed or its job was
// stopped or purged since, and then once; no instance is left out. That holds for every order of
// changes, reports, plans on outdated states and garbage collection, and with clocks that go back.
func TestServer_RunsEachInstanceOnce(t *testing.T) {
	t.Parallel()
	for range soak.Count(4, 400) {
		rapid.Check(t, func(t *rapid.T) {
			m := newCompletionModel(t, rapid.SampledFrom([]uint32{apply.RerunFrom - 1, apply.RerunFrom, apply.RerunFrom, apply.RerunFrom}).Draw(t, "version"))
			job := func() int { return rapid.IntRange(0, len(completionKinds)-1).Draw(t, "job") }
			key := func() model.JobKey { return model.JobKey{Namespace: "default", ID: fmt.Sprint("j", job())} }
			report := func(*rapid.T) { m.report() }
			plan := func(*rapid.T) {
				if len(m.evals) > 0 {
					m.planNext(rapid.IntRange(0, len(m.evals)-1).Draw(t, "eval"))
				}
			}
			advance := func(*rapid.T) {
				if len(m.flight) > 0 {
					m.advance(rapid.IntRange(0, len(m.flight)-1).Draw(t, "plan"))
				}
			}
			t.Repeat(map[string]func(*rapid.T){
				"register": func(*rapid.T) { m.register(m.spec(job())) },
				"revert": func(*rapid.T) {
					versions := m.snap().JobVersions(key())
					if len(versions) == 0 {
						return
					}
					j, err := codec.DecodeJob(codec.EncodeJob(rapid.SampledFrom(versions).Draw(t, "to")))
					if err != nil {
						t.Fatal(err)
					}
					j.Stopped, j.SubmitTime = false, m.now
					m.register(j)
				},
				"stop": func(*rapid.T) { m.stop(key(), rapid.IntRange(0, 3).Draw(t, "purge") == 0) },
				"plan": plan, "plan too": plan,
				"advance": advance, "advance too": advance, "advance more": advance,
				"report": report, "report too": report,
				"node": func(*rapid.T) { m.changeNode() },
				"stop alloc": func(*rapid.T) {
					for a := range m.snap().Allocs() {
						if a.Live() && rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
							m.do(&replication.StopAllocs{IDs: []string{a.ID}})
							return
						}
					}
				},
				"collect":   func(*rapid.T) { m.collect() },
				"upgrade":   func(*rapid.T) { m.do(&replication.SetVersion{Version: apply.RerunFrom}) },
				"quiesce":   func(*rapid.T) { m.quiesce() },
				"quiesce 2": func(*rapid.T) { m.quiesce() },
			})
			m.quiesce()
		})
	}
}
