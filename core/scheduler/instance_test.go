package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
)

// place plans one more instance of a job on some nodes.
func (w *fixture) place(j *model.Job, nodes ...string) string {
	w.t.Helper()
	snap := w.store.Snapshot()
	e := &model.Evaluation{ID: "eval", Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority}
	out, err := w.sched.ProcessInstance(e, scheduler.Instance{Group: j.Groups[0].Name, Nodes: snap.NodeSet(nodes...)}, snap, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	return format(out)
}

func TestProcessInstance_UsesTheGivenNodesOnly(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		w.node(n)
	}
	w.run(job("low", 10, 8, 8).Obj(), "a", "n1")
	w.run(job("mid", 20, 8, 8).Obj(), "b", "n2")
	w.run(job("top", 90, 8, 8).Obj(), "c", "n3")
	// The job lacks instances and has one with another index: none of that matters.
	j := job("j", 50, 6, 6).Count(5).Obj()
	w.run(j)
	for _, tt := range []struct {
		nodes []string
		want  string
	}{
		{[]string{"n1", "n2", "n3"}, "j.g[0]@n1 over a"},
		{[]string{"n2", "n3", "unknown"}, "j.g[0]@n2 over b"},
		{[]string{"n3"}, ""},
		{[]string{"n3", "n4"}, "j.g[0]@n4"},
		{nil, ""},
	} {
		if got := w.place(j, tt.nodes...); got != tt.want {
			t.Errorf("on %v: %q, want %q", tt.nodes, got, tt.want)
		}
	}
}

// The conflicting allocation runs on another node of the zone. An evaluation may evict it;
// an instance that is restricted to nodes may not.
func TestProcessInstance_EvictsNothingOnOtherNodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", zone("a"))
	w.node("n2", zone("a"))
	w.run(job("low", 10, 1, 1).Change(func(j *model.Job) { j.Groups[0].Labels = map[string]string{"app": "low"} }).Obj(), "a", "n1")
	w.run(job("top", 90, 8, 8).Obj(), "t", "n1")
	j := job("j", 50, 6, 6).Change(func(j *model.Job) {
		j.Groups[0].Separate = []model.LabelTerm{{Labels: map[string]string{"app": "low"}, TopologyKey: "zone"}}
	}).Obj()
	w.job(j)
	if got, want := format(w.plan("j")), "j.g[0]@n2 over a"; got != want {
		t.Fatalf("%q without a restriction, want %q", got, want)
	}
	if got, want := w.place(j, "n2"), ""; got != want {
		t.Errorf("%q on n2, want %q", got, want)
	}
}

// A spread counts the domains of all nodes, not only of those that may take the
// instance.
func TestProcessInstance_CountsSpreadOnAllNodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", zone("a"))
	w.node("n2", zone("b"))
	j := job("j", 50, 1, 1).Count(3).Change(func(j *model.Job) {
		j.Groups[0].Spread = []model.Spread{{Attribute: "zone", Weight: 50, MaxSkew: 1}}
	}).Obj()
	w.run(j, "x", "n1")
	if got, want := w.place(j, "n1"), ""; got != want {
		t.Errorf("%q in the zone with an instance, want %q", got, want)
	}
	if got, want := w.place(j, "n2"), "j.g[0]@n2"; got != want {
		t.Errorf("%q in the empty zone, want %q", got, want)
	}
}

func TestProcessInstance_RefusesUnknownGroup(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	e := &model.Evaluation{ID: "eval", Namespace: "default", JobID: "j"}
	if _, err := w.sched.ProcessInstance(e, scheduler.Instance{Group: "g"}, w.store.Snapshot(), 0); err == nil {
		t.Error("no error for an unknown job")
	}
}
