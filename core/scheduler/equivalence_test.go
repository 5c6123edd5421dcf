package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/unblock"
	"github.com/cede-scheduler/cede/core/state"
)

// Two blocked evaluations are in one class exactly if every rejection of one also
// rejects the other.
func TestEquivalenceClass_DistinguishesAsFilterDoes(t *testing.T) {
	t.Parallel()
	type waiting struct {
		job  *model.Job
		eval *model.Evaluation
	}
	for _, tt := range []struct {
		name   string
		change func(*waiting)
		same   bool
	}{
		{"another job", func(*waiting) {}, true},
		{"how many are missing", func(w *waiting) { w.eval.Queued = map[string]int{"main": 7} }, true},
		{"priority", func(w *waiting) { w.job.Priority++ }, false},
		{"ask", func(w *waiting) { w.job.Groups[0].Resources["cpu"]++ }, false},
		{"datacenters", func(w *waiting) { w.job.Datacenters = []string{"dc9"} }, false},
		{"who decides", func(w *waiting) { w.job.Policy = "other" }, false},
		{"a class that it has not seen", func(w *waiting) { w.eval.Classes = map[uint64]bool{1: true} }, false},
		{"a class that cannot take it", func(w *waiting) { w.eval.Classes = map[uint64]bool{1: true, 2: true} }, false},
		{"any class", func(w *waiting) { w.eval.Escaped = true }, false},
		{"labels", func(w *waiting) { w.job.Groups[0].Labels = map[string]string{"app": "x"} }, false},
		{"another version runs", func(w *waiting) { w.job.Version = 1 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := state.New()
			txn := store.Begin(1)
			var list [2]waiting
			for i, id := range []string{"a", "b"} {
				w := &list[i]
				w.job = coretest.Job(id).Priority(50).Ask(100, 100, 0).Obj()
				w.eval = &model.Evaluation{
					ID: "of-" + id, Namespace: w.job.Namespace, JobID: id, Type: w.job.Type,
					Classes: map[uint64]bool{1: true, 2: false},
				}
				if i == 1 {
					tt.change(w)
				}
				if err := txn.JobWriter().Upsert(w.job); err != nil {
					t.Fatal(err)
				}
				w.eval.Failed = map[string]*model.Explanation{w.job.Groups[0].Name: {}}
			}
			snap := txn.Commit()
			if a, b := unblock.EquivalenceClass(snap, list[0].eval), unblock.EquivalenceClass(snap, list[1].eval); (a == b) != tt.same {
				t.Errorf("classes %x and %x", a, b)
			}
		})
	}
}
