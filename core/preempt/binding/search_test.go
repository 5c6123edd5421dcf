package binding_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/binding"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// stub is a policy with the answers of a test.
type stub struct {
	answer func(in *sdk.Candidates, out *sdk.BindingVictims) error
}

func (stub) Info() sdk.Info { return sdk.Info{Name: "stub", Delta: 1} }

func (l stub) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	return l.answer(in, out)
}

func versionOf(t *testing.T, name string, p sdk.Policy) *policy.Version {
	t.Helper()
	v, err := policy.NewVersion(policy.Source{Name: name, Module: policy.Native("sha256:"+name, func() sdk.Policy { return p })})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// twoFullClusters returns two clusters of 10 units. m1 runs bindings of the priorities 0 to
// 3, a cluster-scoped one and one without a request; m2 runs one of 10 units.
func twoFullClusters(t *testing.T) *state.Snapshot {
	t.Helper()
	txn := state.New().Begin(1)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"m1", "m2"} {
		must(txn.ClusterWriter().Upsert(&model.Cluster{ID: id, Capacity: model.Resources{"units": 10}}))
	}
	for _, b := range []struct {
		id, cluster     string
		priority, units int
		scoped          bool
	}{
		{"p0", "m1", 0, 1, false},
		{"p1", "m1", 1, 2, false},
		{"p2", "m1", 2, 5, false},
		{"p3", "m1", 3, 1, false},
		{"scoped", "m1", 0, 1, true},
		{"nothing", "m1", 0, 0, false},
		{"large", "m2", 1, 10, false},
		{"pending", "", 10, 5, false},
	} {
		x := &model.Binding{
			Namespace: "default", ID: b.id, Priority: int32(b.priority), Replicas: 1, ClusterScoped: b.scoped,
			Resources: model.Resources{"units": int64(b.units)}, Preempts: true,
		}
		must(txn.BindingWriter().Upsert(x))
		if b.cluster != "" {
			txn.AssignmentWriter().Upsert(&model.Assignment{ID: b.id, Binding: x.Key(), ClusterID: b.cluster, Replicas: 1, Vec: x.TotalAsk(1)})
		}
	}
	return txn.Commit()
}

func find(t *testing.T, answer func(in *sdk.Candidates, out *sdk.BindingVictims) error) (binding.Result, error) {
	t.Helper()
	snap := twoFullClusters(t)
	return binding.Find(snap, &binding.Request{
		Binding: snap.Binding(model.JobKey{Namespace: "default", ID: "pending"}), Replicas: 1,
		Policy: versionOf(t, "stub", stub{answer}), Default: versionOf(t, "default", rules.New()),
		Clusters: slices.Collect(snap.Clusters()),
	})
}

func ids(victims []binding.Victim) (list []string) {
	for _, v := range victims {
		list = append(list, v.ID)
	}
	return list
}

func TestFind_PassesCandidatesAndReprieves(t *testing.T) {
	t.Parallel()
	asked := 0
	found, err := find(t, func(in *sdk.Candidates, out *sdk.BindingVictims) error {
		asked++
		if p := in.Preemptor; p.JobType != "binding" || p.Job != "pending" || p.Priority != 10 {
			t.Errorf("got preemptor %+v", p)
		}
		if asked == 1 && !slices.Equal(in.Rows.Priority, []int32{0, 1, 2, 3, 1}) {
			t.Errorf("first call has candidates of priorities %v", in.Rows.Priority)
		}
		if asked == 2 && !slices.Equal(in.Rows.Priority, []int32{2, 1}) {
			t.Errorf("second call has candidates of priorities %v", in.Rows.Priority)
		}
		for i := range in.Len() {
			for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
				out.Pick(int(row))
			}
			out.Next()
		}
		out.Tiers[0][1] = 1 // m1 before m2
		return nil
	})
	if err != nil || asked != 2 {
		t.Fatal(asked, err)
	}
	if found.Cluster.ID != "m1" || !slices.Equal(ids(found.Victims), []string{"p2"}) {
		t.Errorf("victims %v on %s, want p2 on m1", ids(found.Victims), found.Cluster.ID)
	}
}

func TestFind_DropsClusterWhereTooLittleIsFreed(t *testing.T) {
	t.Parallel()
	found, err := find(t, func(in *sdk.Candidates, out *sdk.BindingVictims) error {
		for i := range in.Len() {
			if in.FirstRow[i+1]-in.FirstRow[i] == 1 {
				out.Pick(int(in.FirstRow[i]))
			}
			out.Next()
		}
		return nil
	})
	if err != nil || found.Cluster.ID != "m2" || !slices.Equal(found.Outcomes, []preempt.Outcome{preempt.Declined, preempt.Possible}) {
		t.Errorf("%+v, %v", found, err)
	}
}

// A policy that requests the next nanosecond is called again after a second, whichever of its
// calls requests it.
func TestFind_DelaysRecheckThatIsTooSoon(t *testing.T) {
	t.Parallel()
	for call := range 2 {
		calls := 0
		found, err := find(t, func(in *sdk.Candidates, out *sdk.BindingVictims) error {
			if calls == call {
				out.Recheck.At(in.Now + 1)
			}
			calls++
			for i := range in.Len() {
				for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
					out.Pick(int(row))
				}
				out.Next()
			}
			return nil
		})
		if err != nil || calls != 2 || found.RecheckAt != protect.MinRecheck {
			t.Errorf("recheck of call %d of %d is at %d, want %d: %v", call, calls, found.RecheckAt, protect.MinRecheck, err)
		}
	}
	snap := twoFullClusters(t)
	v := versionOf(t, "stub", stub{func(in *sdk.Candidates, out *sdk.BindingVictims) error {
		out.Recheck.At(in.Now + 1)
		for range in.Len() {
			out.Next()
		}
		return nil
	}})
	req := &binding.Request{
		Binding: snap.Binding(model.JobKey{Namespace: "default", ID: "pending"}), Replicas: 1, Policy: v, Default: v, Clusters: slices.Collect(snap.Clusters()),
	}
	found, err := binding.FindSpread(snap, req, func([]model.Vector) bool { return false })
	if err != nil || found.Result.RecheckAt != protect.MinRecheck {
		t.Errorf("recheck of a search over several clusters is at %d, want %d: %v", found.Result.RecheckAt, protect.MinRecheck, err)
	}
}

func TestFind_RejectsInvalidAnswers(t *testing.T) {
	t.Parallel()
	for words, answer := range map[string]func(in *sdk.Candidates, out *sdk.BindingVictims) error{
		"is not one of its rows": func(in *sdk.Candidates, out *sdk.BindingVictims) error {
			for range in.Len() {
				out.Pick(in.Rows.Len() - 1)
				out.Next()
			}
			return nil
		},
		"is listed twice": func(in *sdk.Candidates, out *sdk.BindingVictims) error {
			for i := range in.Len() {
				out.Pick(int(in.FirstRow[i]))
				out.Pick(int(in.FirstRow[i]))
				out.Next()
			}
			return nil
		},
		"answered 0 clusters of 2": func(*sdk.Candidates, *sdk.BindingVictims) error { return nil },
		"policy failed":            func(*sdk.Candidates, *sdk.BindingVictims) error { return errors.New("policy failed") },
		"panic":                    func(*sdk.Candidates, *sdk.BindingVictims) error { panic("no") },
	} {
		_, err := find(t, answer)
		fault, ok := errors.AsType[*policy.Error](err)
		if !ok || fault.Policy != "stub" || fault.Hook != "PreemptBindings" || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want a fault of the policy that contains %q", err, words)
		}
	}
}

func TestFind_DefaultServesMissingHook(t *testing.T) {
	t.Parallel()
	snap := twoFullClusters(t)
	fallback := versionOf(t, "default", rules.New())
	found, err := binding.Find(snap, &binding.Request{
		Binding: snap.Binding(model.JobKey{Namespace: "default", ID: "pending"}), Replicas: 1, Delta: new(int32(1)),
		Policy: versionOf(t, "without-hook", withoutHook{}), Default: fallback, Clusters: slices.Collect(snap.Clusters()),
	})
	if err != nil || found.Version != fallback || found.Cluster.ID != "m2" || !slices.Equal(ids(found.Victims), []string{"large"}) {
		t.Errorf("got %+v, %v; want victim large on m2, which has the lower priority", found, err)
	}
}

type withoutHook struct{}

func (withoutHook) Info() sdk.Info { return sdk.Info{Name: "without-hook"} }
