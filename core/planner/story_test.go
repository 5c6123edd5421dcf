package planner_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Stories are files. Commands:
//
//	tracker threshold=3 window=60 burst=1     before anything else
//	node n1 cpu=1000 memory=1000 ports=80 devices=acme/gpu/x:4
//	node n1 set=down|ready|ineligible|drain
//	job web priority=70 cpu=500 memory=250 count=2 version=1 ports=80 gpu=2
//	    stopped nonpreemptible neverpreempts system labels=web,db
//	    whole least=2 minruntime=60 minpreemptor=80
//	budget web min=1 strict                   of the label web; max=50%, gone
//	run a1 job=low index=0 node=n1 devices=acme/gpu/x:2
//	end a1                                    it completes
//	tick 30                                   seconds
//	submit p1 job=web snapshot=7 priority=80
//	  group divisible                         the word may be absent
//	  place w0 index=0 node=n1 devices=acme/gpu/x:2
//	  evict a1 by=w0
//	  stop a2 lost
//	  update a3
//	  claim c1 node=n1 cpu=100 memory=100 for=60 above=1
//	apply fail                                one batch; fail: its commit fails
//	show nodes|allocs|evals|stats
type story struct {
	t       *testing.T
	store   *state.Store
	clock   *clock.Virtual
	cfg     planner.RejectionTrackerConfig
	fail    bool
	applier *planner.Applier
	queue   *planner.Queue
	waiting []submitted
}

type submitted struct {
	name    string
	pending *planner.PendingPlan
}

var errDisk = errors.New("disk is full")

func (s *story) Commit(ctx context.Context, b *apply.Batch) (planner.CommitResult, error) {
	if s.fail {
		return planner.CommitResult{}, errDisk
	}
	return planner.DirectCommitter{Store: s.store}.Commit(ctx, b)
}

func TestStories(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := &story{t: t, store: state.New(), clock: clock.NewVirtual(time.Unix(0, 0)), queue: planner.NewQueue()}
			s.queue.SetEnabled(true)
			datadriven.RunTest(t, path, s.run)
			if err := s.store.Snapshot().Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// words returns the arguments of one line: key=value, or a single word.
type words map[string]string

func parse(args []string) words {
	w := words{}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		w[k] = v
	}
	return w
}

func (w words) has(k string) bool { _, ok := w[k]; return ok }

func (w words) num(k string) int64 {
	n, _ := strconv.ParseInt(w[k], 10, 64)
	return n
}

func (w words) list(k string) []string {
	if w[k] == "" {
		return nil
	}
	return strings.Split(w[k], ",")
}

func (w words) ports() (ports []uint16) {
	for _, p := range w.list("ports") {
		n, _ := strconv.Atoi(p)
		ports = append(ports, uint16(n))
	}
	return ports
}

func (w words) devices() (uses []model.DeviceUse) {
	for _, d := range w.list("devices") {
		id, n, _ := strings.Cut(d, ":")
		count, _ := strconv.Atoi(n)
		uses = append(uses, model.DeviceUse{ID: id, Count: int32(count)})
	}
	return uses
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	var line []string
	for _, a := range d.CmdArgs {
		line = append(line, a.String())
	}
	name := ""
	if len(line) > 0 {
		name = line[0]
	}
	w := parse(line)
	switch d.Cmd {
	case "tracker":
		s.cfg = planner.RejectionTrackerConfig{
			Threshold: int(w.num("threshold")), Window: time.Duration(w.num("window")) * time.Second, Burst: int(w.num("burst")),
		}
	case "node":
		s.node(name, w)
	case "job":
		s.job(name, w)
	case "budget":
		s.budget(name, w)
	case "run":
		s.write(func(txn *state.Txn) {
			a := coretest.Running(name, txn.Job(key(w["job"])), 0, int(w.num("index")), w["node"])
			a.Devices = w.devices()
			txn.AllocWriter().Upsert(a)
		})
	case "end":
		s.write(func(txn *state.Txn) {
			a := *txn.Alloc(name)
			a.Client = model.ClientComplete
			txn.AllocWriter().Upsert(&a)
		})
	case "tick":
		n, _ := strconv.Atoi(name)
		s.clock.AdvanceTo(s.clock.Now().Add(time.Duration(n) * time.Second))
	case "submit":
		return s.submit(name, w, d.Input)
	case "apply":
		return s.apply(w)
	case "show":
		return s.show(name)
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	return fmt.Sprintf("index %d\n", s.store.Snapshot().Index())
}

func key(id string) model.JobKey { return model.JobKey{Namespace: model.DefaultNamespace, ID: id} }

func (s *story) write(f func(*state.Txn)) {
	txn := s.store.Begin(s.store.Snapshot().Index() + 1)
	f(txn)
	txn.Commit()
}

func (s *story) node(id string, w words) {
	s.write(func(txn *state.Txn) {
		n := coretest.Node(id, w.num("cpu"), w.num("memory"), 0)
		if old := txn.Node(id); old != nil {
			copied := *old
			n = &copied
		}
		n.Status, n.Ineligible, n.Drain = model.NodeReady, w["set"] == "ineligible", w["set"] == "drain"
		if w["set"] == "down" {
			n.Status = model.NodeDown
		}
		if w["set"] == "gone" {
			txn.NodeWriter().Delete(id)
			return
		}
		n.Ports = append(n.Ports, w.ports()...)
		for _, u := range w.devices() {
			n.Devices = append(n.Devices, model.Device{ID: u.ID, Count: u.Count})
		}
		if err := txn.NodeWriter().Upsert(n); err != nil {
			s.t.Fatal(err)
		}
	})
}

func (s *story) job(id string, w words) {
	s.write(func(txn *state.Txn) {
		if w.has("gone") {
			txn.JobWriter().Delete(key(id))
			return
		}
		j := coretest.Job(id).Priority(int32(w.num("priority"))).Ask(w.num("cpu"), w.num("memory"), 0).
			Count(max(1, int(w.num("count")))).With(func(g *model.Group) {
			g.Ports = w.ports()
			for _, label := range w.list("labels") {
				if g.Labels == nil {
					g.Labels = map[string]string{}
				}
				g.Labels[label] = ""
			}
			for _, count := range w.list("gpu") {
				n, _ := strconv.Atoi(count)
				g.Devices = append(g.Devices, model.DeviceRequest{ID: "gpu", Count: int32(n)})
			}
		}).Obj()
		j.Version = uint64(w.num("version"))
		j.Stopped, j.NonPreemptible, j.NeverPreempts = w.has("stopped"), w.has("nonpreemptible"), w.has("neverpreempts")
		if w.has("system") {
			j.Type = model.JobSystem
		}
		j.AllOrNone = w.has("whole")
		j.Groups[0].MinCount = int(w.num("least"))
		if w.has("minruntime") || w.has("minpreemptor") {
			j.Toleration = &model.PreemptionToleration{MinRuntime: w.num("minruntime") * int64(time.Second)}
			if w.has("minpreemptor") {
				j.Toleration.MinPreemptorPriority = new(int32(w.num("minpreemptor")))
			}
		}
		if err := txn.JobWriter().Upsert(j); err != nil {
			s.t.Fatal(err)
		}
	})
}

func (s *story) budget(name string, w words) {
	s.write(func(txn *state.Txn) {
		b := &model.Budget{Namespace: model.DefaultNamespace, Name: name, Labels: map[string]string{name: ""}, Strict: w.has("strict")}
		if w.has("gone") {
			txn.BudgetWriter().Delete(b.Key())
			return
		}
		bound := func(k string) *model.Bound {
			if !w.has(k) {
				return nil
			}
			text, percent := strings.CutSuffix(w[k], "%")
			n, _ := strconv.Atoi(text)
			return &model.Bound{Number: int32(n), Percent: percent}
		}
		b.MinAvailable, b.MaxUnavailable = bound("min"), bound("max")
		txn.BudgetWriter().Upsert(b)
	})
}

func (s *story) submit(name string, w words, input string) string {
	snap := s.store.Snapshot()
	job := snap.Job(key(w["job"]))
	plan := &model.Plan{EvalID: name, Job: key(w["job"]), SnapshotIndex: snap.Index(), Now: s.clock.Now().UnixNano()}
	if w.has("snapshot") {
		plan.SnapshotIndex = uint64(w.num("snapshot"))
	}
	if job != nil {
		plan.Priority = job.Priority
	}
	if w.has("priority") {
		plan.Priority = int32(w.num("priority"))
	}
	for line := range strings.Lines(input) {
		f := strings.Fields(line)
		if f[0] == "group" {
			plan.Groups = append(plan.Groups, model.CommitGroup{Divisible: parse(f[1:]).has("divisible")})
			continue
		}
		s.groupLine(plan, job, f)
	}
	p, err := s.queue.Enqueue(plan)
	if err != nil {
		return err.Error() + "\n"
	}
	s.waiting = append(s.waiting, submitted{name, p})
	return fmt.Sprintf("depth %d\n", s.queue.Depth())
}

func (s *story) groupLine(plan *model.Plan, job *model.Job, f []string) {
	g := &plan.Groups[len(plan.Groups)-1]
	w := parse(f[1:])
	switch f[0] {
	case "place":
		a := &model.Allocation{ID: f[1], Index: int(w.num("index")), NodeID: w["node"], EvalID: plan.EvalID, Devices: w.devices()}
		if job != nil {
			a.Job, a.Group = job, job.Groups[0]
		}
		if w.has("job") {
			a.Job = s.store.Snapshot().Job(key(w["job"]))
			a.Group = a.Job.Groups[0]
		}
		g.Placements = append(g.Placements, a)
	case "evict":
		g.Evictions = append(g.Evictions, model.Eviction{AllocID: f[1], By: w["by"]})
		for _, a := range g.Placements {
			if a.ID == w["by"] {
				a.Preempted = append(a.Preempted, f[1])
			}
		}
	case "stop":
		g.Stops = append(g.Stops, model.Stop{AllocID: f[1], Reason: "not wanted", Lost: w.has("lost")})
	case "update":
		a := *s.store.Snapshot().Alloc(f[1])
		a.Job, a.Group = job, job.Groups[0]
		g.Updates = append(g.Updates, &a)
	case "claim":
		g.Claims = append(g.Claims, &model.Claim{
			ID: f[1], Claimant: plan.Job, NodeID: w["node"], Priority: plan.Priority + int32(w.num("above")),
			Vec: model.Vector{model.CPU: w.num("cpu"), model.Memory: w.num("memory")}, Ports: w.ports(), Devices: w.devices(),
			Expiry: s.clock.Now().Add(time.Duration(w.num("for")) * time.Second).UnixNano(),
		})
	default:
		s.t.Fatalf("unknown line %v", f)
	}
}

func (s *story) apply(w words) string {
	if s.applier == nil {
		s.applier = planner.NewApplier(planner.Config{
			Store: s.store, Committer: s, Queue: s.queue, Clock: s.clock, RejectionTracker: s.cfg, WaitState: time.Nanosecond,
		})
	}
	s.fail = w.has("fail")
	n, err := s.applier.Step(context.Background())
	var b strings.Builder
	fmt.Fprintf(&b, "%d plans", n)
	if err != nil {
		fmt.Fprintf(&b, ", %v", err)
	}
	fmt.Fprintf(&b, ", index %d\n", s.store.Snapshot().Index())
	s.waiting = slices.DeleteFunc(s.waiting, func(p submitted) bool {
		select {
		case <-p.pending.Done():
		default:
			return false
		}
		b.WriteString(p.name + ": ")
		describe(&b, p.pending)
		return true
	})
	return b.String()
}

func describe(b *strings.Builder, p *planner.PendingPlan) {
	r, err := p.Result()
	if err != nil {
		fmt.Fprintf(b, "error: %v\n", err)
		return
	}
	fmt.Fprintf(b, "committed %v at %d", r.Committed, r.Index)
	if r.RefreshIndex > 0 {
		fmt.Fprintf(b, ", refresh %d", r.RefreshIndex)
	}
	b.WriteByte('\n')
	for _, x := range r.Rejected {
		part := ""
		if x.Places != nil {
			part = fmt.Sprintf(", placements %v", x.Places)
		}
		fmt.Fprintf(b, "  group %d on %s%s: %s\n", x.Group, x.NodeID, part, x.Reason)
	}
}

func (s *story) show(what string) string {
	snap := s.store.Snapshot()
	var b strings.Builder
	switch what {
	case "nodes":
		for n := range snap.Nodes() {
			pos, _ := snap.Position(n.ID)
			room := snap.Chunk(int(pos / state.ChunkSize)).FreeCapacity(int(pos % state.ChunkSize))
			fmt.Fprintf(&b, "%s %s ineligible=%t: free cpu %d, memory %d, ports taken %v, devices free %v\n", n.ID, n.Status,
				n.Ineligible, room.Free[model.CPU*room.Stride], room.Free[model.Memory*room.Stride], room.Ports, room.Devices)
		}
	case "allocs":
		for a := range snap.Allocs() {
			fmt.Fprintf(&b, "%s on %s: %s, %s", a.ID, a.NodeID, a.Desired, a.Client)
			if a.PreemptedBy != "" {
				fmt.Fprintf(&b, ", by %s", a.PreemptedBy)
			}
			if len(a.Preempted) > 0 {
				fmt.Fprintf(&b, ", preempted %v", a.Preempted)
			}
			b.WriteByte('\n')
		}
	case "evals":
		for e := range snap.Evals() {
			fmt.Fprintf(&b, "%s: %s\n", e.JobKey(), e.TriggeredBy)
		}
	case "stats":
		st := s.applier.Stats()
		fmt.Fprintf(&b, "plans %d, groups %d, batches %d with %d plans, failures %d, malformed %d, marked %d\n",
			st.Plans, st.Groups, st.Batches, st.BatchPlans, st.Failures, st.Malformed, st.Marked)
		for c := range planner.RejectionCause(len(st.Rejected)) {
			if st.Rejected[c] > 0 {
				fmt.Fprintf(&b, "rejected, %s: %d\n", c, st.Rejected[c])
			}
		}
	}
	return b.String()
}
