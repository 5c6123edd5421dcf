package state_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

var policyIDs = []string{"sha256:a", "sha256:b", "sha256:c"}

func drawPolicy(t *rapid.T) string { return rapid.SampledFrom(policyIDs).Draw(t, "policy") }

func writePolicy(t *rapid.T, w *world) {
	id := drawPolicy(t)
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		w.txn.PolicyWriter().DeleteVersion(id)
		delete(w.ref.policies, id)
	case 1:
		w.txn.PolicyWriter().DeleteState(id)
		delete(w.ref.states, id)
	case 2:
		s := &model.PolicyState{Name: id, Active: drawPolicy(t)}
		w.txn.PolicyWriter().UpsertState(s)
		w.ref.states[id] = s
	case 3:
		w.txn.PolicyWriter().DeleteTrial(id)
		delete(w.ref.trials, id)
	case 4:
		trial := &model.PolicyTrial{Name: id, Candidate: drawPolicy(t)}
		w.txn.PolicyWriter().UpsertTrial(trial)
		w.txn.PolicyWriter().AddToTrial(id, func(s *model.PolicySums) { s.Victims++ })
		w.ref.trials[id] = w.txn.PolicyTrial(id)
		if sums := w.ref.trials[id].Current.Sums; trial.Current.Sums.Victims != 0 || sums.Victims != 1 {
			t.Fatalf("trial of %s: %+v", id, sums)
		}
	default:
		v := &model.PolicyVersion{ID: id, Name: "p"}
		created := w.ref.index
		if old := w.ref.policies[id]; old != nil {
			v, created = old.WithCheck("server", model.PolicyCheck{OK: true}), old.CreateIndex
		}
		w.txn.PolicyWriter().UpsertVersion(v)
		w.ref.policies[id] = v
		if v.CreateIndex != created || v.ModifyIndex != w.ref.index {
			t.Fatalf("policy version created at %d, modified at %d", v.CreateIndex, v.ModifyIndex)
		}
	}
}

func writeUpload(t *rapid.T, w *world) {
	digest := drawPolicy(t)
	if rapid.Bool().Draw(t, "delete") {
		w.txn.UploadWriter().Delete(digest)
		delete(w.ref.uploads, digest)
		return
	}
	u := w.ref.uploads[digest]
	if u == nil {
		u = &Upload{Digest: digest}
	}
	u = u.With(1, rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "chunk"))
	w.txn.UploadWriter().Put(u)
	w.ref.uploads[digest] = u
}

func writeToken(t *rapid.T, w *world) {
	accessor := drawPolicy(t)
	if rapid.Bool().Draw(t, "delete") {
		w.txn.TokenWriter().Delete(accessor)
		delete(w.ref.tokens, accessor)
		return
	}
	k := &model.Token{Accessor: accessor, Hash: [32]byte{rapid.Byte().Draw(t, "hash")}}
	w.txn.TokenWriter().Upsert(k)
	w.ref.tokens[accessor] = k
	w.ref.meta = Meta{ClusterID: accessor, Version: w.ref.meta.Version + 1}
	w.txn.ConfigWriter().SetMeta(w.ref.meta)
}

// writeApplied advances the time, so that records expire.
func writeApplied(t *rapid.T, w *world) {
	now := int64(w.ref.index) * IdempotencyWindow / 4
	w.txn.IdempotencyWriter().Expire(now)
	for len(w.ref.applied) > 0 && now-appliedTime(w.ref.applied[0]) > IdempotencyWindow {
		w.ref.applied = w.ref.applied[1:]
	}
	key := fmt.Sprintf("%d/%d", w.ref.index, len(w.ref.applied))
	if slices.Contains(w.ref.applied, key) {
		return
	}
	w.txn.IdempotencyWriter().Add(key, IdempotencyRecord{Index: w.ref.index, Time: now})
	w.ref.applied = append(slices.Clip(w.ref.applied), key)
}

func appliedTime(key string) int64 {
	var index int64
	_, _ = fmt.Sscanf(key, "%d/", &index)
	return index * IdempotencyWindow / 4
}

func compareAside(t *rapid.T, v *View, r *reference) {
	compareNamed(t, v.PolicyVersions(), r.policies, v.PolicyVersion)
	compareNamed(t, v.PolicyStates(), r.states, v.PolicyState)
	compareNamed(t, v.PolicyTrials(), r.trials, v.PolicyTrial)
	compareNamed(t, v.Uploads(), r.uploads, v.Upload)
	compareNamed(t, v.Tokens(), r.tokens, v.Token)
	for _, k := range r.tokens {
		if got := v.TokenByHash(k.Hash); got == nil || got.Hash != k.Hash {
			t.Fatalf("token %s is not found by its hash", k.Accessor)
		}
	}
	if v.Meta() != r.meta {
		t.Fatalf("meta %v, want %v", v.Meta(), r.meta)
	}
	var keys []string
	for key, a := range v.IdempotencyRecords() {
		if got, ok := v.IdempotencyRecord(key); !ok || got.Time != a.Time {
			t.Fatalf("idempotency key %s is not found", key)
		}
		keys = append(keys, key)
	}
	if !slices.Equal(keys, r.applied) {
		t.Fatalf("idempotency keys %v, want %v", keys, r.applied)
	}
	if _, ok := v.IdempotencyRecord("never"); ok {
		t.Fatal("a key is remembered that never was")
	}
}

func compareNamed[T any](t *rapid.T, got []*T, want map[string]*T, find func(string) *T) {
	ordered := make([]*T, 0, len(want))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		ordered = append(ordered, want[name])
	}
	if !slices.Equal(got, ordered) {
		t.Fatalf("%T: %d, want %d, or others", got, len(got), len(ordered))
	}
	for _, name := range policyIDs {
		if find(name) != want[name] {
			t.Fatalf("%T: %s is another", got, name)
		}
	}
}

func TestIdempotencyRecords_DropTheOldestIfTooMany(t *testing.T) {
	t.Parallel()
	s := New()
	for index := uint64(1); index <= 3; index++ {
		txn := s.Begin(index)
		for i := range MaxIdempotencyRecords / 2 {
			txn.IdempotencyWriter().Add(fmt.Sprintf("%d/%d", index, i), IdempotencyRecord{Index: index})
		}
		txn.Commit()
	}
	sn := s.Snapshot()
	if _, ok := sn.IdempotencyRecord("1/0"); ok {
		t.Error("the oldest key is still there")
	}
	for _, key := range []string{"2/0", fmt.Sprintf("3/%d", MaxIdempotencyRecords/2-1)} {
		if _, ok := sn.IdempotencyRecord(key); !ok {
			t.Errorf("key %s was forgotten", key)
		}
	}
	for key := range sn.IdempotencyRecords() {
		if key != "2/0" {
			t.Errorf("the oldest is %s", key)
		}
		break
	}
	if err := sn.Check(); err != nil {
		t.Error(err)
	}
}

func TestRestore_SetsOlderVersionsOfAJob(t *testing.T) {
	t.Parallel()
	s := New()
	key := model.JobKey{Namespace: "default", ID: "job-0"}
	for version := range uint64(9) {
		txn := s.Begin(version + 1)
		if err := txn.JobWriter().Upsert(&model.Job{Namespace: key.Namespace, ID: key.ID, Version: version}); err != nil {
			t.Fatal(err)
		}
		txn.Commit()
	}
	was := s.Snapshot().JobVersions(key)
	txn := s.BeginRestore(20)
	job := *was[0]
	if err := txn.JobWriter().Upsert(&job); err != nil {
		t.Fatal(err)
	}
	if err := txn.JobWriter().SetOlderVersions(key, was[1:]...); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range txn.Commit().JobVersions(key) {
		got = append(got, fmt.Sprint(j.Version, "@", j.ModifyIndex))
	}
	if want := "8@9 7@8 6@7 5@6 4@5 3@4"; strings.Join(got, " ") != want {
		t.Errorf("versions %v, want %s", got, want)
	}
}

// A binding that is written in a loop has thousands of final evaluations until they are
// collected. A further one must not copy and sort them.
func TestEvals_WritesDoNotCopyFinalOnes(t *testing.T) {
	s := New()
	key := model.JobKey{Namespace: "default", ID: "often"}
	b := &model.Binding{Namespace: key.Namespace, ID: key.ID, Priority: 7, Replicas: 1, Resources: model.Resources{"units": 1}}
	write := func(index, n int, status model.EvalStatus) {
		txn := s.Begin(uint64(index))
		defer txn.Commit()
		if index == 1 {
			if err := txn.BindingWriter().Upsert(b); err != nil {
				t.Fatal(err)
			}
		}
		apply.QueuePriority(txn.EvalWriter(), 0, b)
		for i := range n {
			txn.EvalWriter().Upsert(&model.Evaluation{
				ID: fmt.Sprintf("%08d-0000-0000-0000-%012d", index, i), Namespace: key.Namespace, JobID: key.ID, Type: model.JobBinding, Status: status,
			})
		}
	}
	const final = 5000
	write(1, final, model.EvalComplete)
	write(2, 1, model.EvalPending)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const writes = 20
	for i := range writes {
		write(3+i, 1, model.EvalComplete)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / writes; each > final*8 {
		t.Errorf("a write beside %d final evaluations allocates %d bytes: it copies them", final, each)
	}
	snap := s.Snapshot()
	if pending := snap.PendingEvals(key); len(pending) != 1 || pending[0].Priority != 7 || len(snap.EvalsOfJob(key)) != final+1+writes {
		t.Errorf("%d pending evaluations, %d in all", len(pending), len(snap.EvalsOfJob(key)))
	}
	if err := snap.Check(); err != nil {
		t.Error(err)
	}
}
