package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

var small = Limits{
	GroupCount: 10, JobAllocations: 15, JobGroups: 2, GroupTasks: 1, NamespaceJobs: 3, NamespaceAllocations: 20,
	BindingReplicas: 10, BindingClusters: 2, NamespaceBindings: 2, NamespaceReplicas: 15, Clusters: 1,
}

// newState returns a state with jobs of the given counts, named j0, j1 and so on.
func newState(t *testing.T, counts ...int) *state.Snapshot {
	t.Helper()
	fork := state.New().Snapshot().Fork(uint64(1 + len(counts)))
	for i, n := range counts {
		if err := fork.JobWriter().Upsert(coretest.Job(fmt.Sprintf("j%d", i)).Count(n).Obj()); err != nil {
			t.Fatal(err)
		}
	}
	return fork.Snapshot()
}

func TestChecker_ListsEveryLimitOfJob(t *testing.T) {
	t.Parallel()
	c := New(small, clock.NewVirtual(time.Unix(0, 0)))
	j := coretest.Job("big").Count(11).Obj()
	j.Groups[0].Tasks = make([]*model.Task, 2)
	for _, name := range []string{"b", "c"} {
		j.Groups = append(j.Groups, &model.Group{Name: name, Count: 5})
	}
	got := strings.Join(c.Job(newState(t), j, true), "\n")
	for _, key := range []string{"job_groups", "group_count", "group_tasks", "job_allocations", "namespace_allocations"} {
		if !strings.Contains(got, "limits.admission."+key) {
			t.Errorf("%s is not in:\n%s", key, got)
		}
	}
	if strings.Contains(got, "namespace_jobs") {
		t.Errorf("namespace_jobs is not exceeded:\n%s", got)
	}
	if !strings.Contains(got, "groups: 3, at most 2 are allowed (raise limits.admission.job_groups)") {
		t.Errorf("text:\n%s", got)
	}
}

// A namespace is counted once, and accepted jobs are added: a burst cannot exceed it.
func TestChecker_CountsAcceptedJobs(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(time.Unix(0, 0))
	c := New(small, now)
	empty := newState(t)
	for i := range 2 {
		if p := c.Job(empty, coretest.Job(fmt.Sprint("a", i)).Count(10).Obj(), true); len(p) > 0 {
			t.Fatal(p)
		}
	}
	if p := c.Job(empty, coretest.Job("a2").Count(1).Obj(), true); len(p) != 1 || !strings.Contains(p[0], "namespace_allocations") {
		t.Errorf("the third job: %q", p)
	}
	other := coretest.Job("b").Count(10).Obj()
	other.Namespace = "other"
	if p := c.Job(empty, other, true); len(p) > 0 {
		t.Errorf("another namespace: %q", p)
	}
	// Nothing of it was written: a newer state shows that, before the count expires.
	if p := c.Job(newState(t, 1), coretest.Job("a2").Count(1).Obj(), true); len(p) > 0 {
		t.Errorf("after the state changed: %q", p)
	}
	// A state that changed otherwise is noticed after a while.
	if p := c.Job(newState(t, 10, 10), coretest.Job("a3").Count(1).Obj(), true); len(p) > 0 {
		t.Errorf("within the time of a count: %q", p)
	}
	now.AdvanceTo(now.Now().Add(usageTTL + time.Second))
	if p := c.Job(newState(t, 10, 10), coretest.Job("a4").Count(1).Obj(), true); len(p) != 1 {
		t.Errorf("after it: %q", p)
	}
}

// A plan uses nothing of its namespace.
func TestChecker_PlansReserveNothing(t *testing.T) {
	t.Parallel()
	c := New(small, clock.NewVirtual(time.Unix(0, 0)))
	for i := range 10 {
		if p := c.Job(newState(t), coretest.Job(fmt.Sprint("a", i)).Count(10).Obj(), false); len(p) > 0 {
			t.Fatal(p)
		}
	}
}

// An object above a limit that was lowered can be reduced, not increased.
func TestChecker_AcceptsReductionsAboveTheLimit(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]bool{40: false, 30: true, 25: true, 5: true, 31: false} {
		c := New(small, clock.NewVirtual(time.Unix(0, 0)))
		p := c.Job(newState(t, 30), coretest.Job("j0").Count(count).Obj(), true)
		if want != (len(p) == 0) {
			t.Errorf("from 30 to %d: %q", count, p)
		}
	}
}

func TestChecker_LimitsBindingsAndClusters(t *testing.T) {
	t.Parallel()
	c := New(small, clock.NewVirtual(time.Unix(0, 0)))
	s := newState(t)
	binding := func(id string, replicas int) *model.Binding {
		return &model.Binding{Namespace: "default", ID: id, Replicas: replicas}
	}
	large := binding("large", 11)
	large.Clusters = []string{"a", "b", "c"}
	if got := strings.Join(c.Binding(s, large), "\n"); !strings.Contains(got, "binding_replicas") || !strings.Contains(got, "binding_clusters") {
		t.Errorf("problems %q", got)
	}
	if p := c.Binding(s, binding("b1", 10)); len(p) > 0 {
		t.Error(p)
	}
	if p := c.Binding(s, binding("b2", 10)); len(p) != 1 || !strings.Contains(p[0], "namespace_replicas") {
		t.Error(p)
	}
	if p := c.Binding(s, binding("b2", 5)); len(p) > 0 {
		t.Error(p)
	}
	if p := c.Binding(s, binding("b3", 0)); len(p) != 1 || !strings.Contains(p[0], "namespace_bindings") {
		t.Error(p)
	}
	fork := s.Fork(2)
	if p := c.Cluster(s, "c1"); len(p) > 0 {
		t.Error(p)
	}
	if err := fork.ClusterWriter().Upsert(&model.Cluster{ID: "c1"}); err != nil {
		t.Fatal(err)
	}
	if p := c.Cluster(fork.Snapshot(), "c2"); len(p) != 1 || !strings.Contains(p[0], "limits.admission.clusters") {
		t.Error(p)
	}
	if p := c.Cluster(fork.Snapshot(), "c1"); len(p) > 0 {
		t.Error(p)
	}
}
