package policy_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
)

func TestActiveSet_VersionsCloseAfterTheLastUnpin(t *testing.T) {
	t.Parallel()
	old, kept, next := &factory{name: "default"}, &factory{name: "kept"}, &factory{name: "default"}
	keep := version(t, kept)
	active := policy.NewActiveSet(set(t, version(t, old), keep))
	pinned := active.Pin()
	in := acquire(t, pinned.Default())
	active.Swap(set(t, version(t, next), keep))
	if old.open.Load() != 1 {
		t.Error("the old version was closed under an evaluation")
	}
	pinned.Default().Release(in)
	if err := acquire(t, pinned.Default()).PriorityDelta(nil, nil, nil); err != nil {
		t.Error("the pinned set does not answer:", err)
	}
	pinned.Unpin()
	if kept.open.Load() != 1 {
		t.Error("a version that is in the new set was closed")
	}
	if now := active.Pin(); now == pinned {
		t.Error("the old set is still in force")
	}
}

func TestVersion_ClosesInstancesReleasedLate(t *testing.T) {
	t.Parallel()
	f := &factory{name: "default"}
	s := set(t, version(t, f))
	in := acquire(t, s.Default())
	s.Unpin()
	if f.open.Load() != 1 {
		t.Error("an instance was closed in use")
	}
	s.Default().Release(in)
	if f.open.Load() != 0 {
		t.Error("an instance of a retired version was kept")
	}
}

func TestOverride_IsHeldLikeAnyOther(t *testing.T) {
	t.Parallel()
	f, other := &factory{name: "default"}, &factory{name: "other"}
	s := set(t, version(t, f))
	o := s.Override(version(t, other))
	s.Unpin()
	if v, err := o.Select("anything", "at all"); err != nil || v.Name != "other" {
		t.Errorf("picked %v, %v", v, err)
	}
	if f.open.Load() != 1 || other.open.Load() != 1 {
		t.Error("a version of a set in use was closed")
	}
	o.Unpin()
	if f.open.Load() != 0 || other.open.Load() != 0 {
		t.Error("versions outlive their last set")
	}
}

// Two generations of a pair of policies: a caller that pins a set gets both of one
// generation.
func TestActiveSet_SwapIsAtomic(t *testing.T) {
	t.Parallel()
	generation := func() (*policy.Set, []*factory) {
		fs := []*factory{{name: "default"}, {name: "other"}}
		return set(t, version(t, fs[0]), version(t, fs[1])), fs
	}
	home := map[*policy.Version]*policy.Set{}
	var sets []*policy.Set
	var all []*factory
	for range 50 {
		s, fs := generation()
		sets, all = append(sets, s), append(all, fs...)
		for _, v := range s.Versions() {
			home[v] = s
		}
	}
	active := policy.NewActiveSet(sets[0])
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := active.Pin()
				for _, v := range s.Versions() {
					in, err := v.Acquire()
					if err != nil {
						t.Error(err)
						continue
					}
					if err := in.PriorityDelta(nil, nil, nil); err != nil || home[v] != s {
						t.Error("mixed or failed:", err)
					}
					v.Release(in)
				}
				s.Unpin()
			}
		})
	}
	for _, s := range sets[1:] {
		active.Swap(s)
	}
	close(stop)
	wg.Wait()
	for i, f := range all {
		if last := i >= len(all)-2; f.open.Load() > 0 != last && !last {
			t.Errorf("generation %d has %d instances open", i/2, f.open.Load())
		}
	}
}

func TestSet_SuggestsSimilarPolicy(t *testing.T) {
	t.Parallel()
	s := set(t, version(t, &factory{name: "default"}), version(t, &factory{name: "least-waste"}))
	defer s.Unpin()
	for name, want := range map[string]string{
		"lest-waste": "did you mean least-waste?", "nothing": "load it, or use one of default, least-waste", "nothing?a=1": "load it, or use one of default, least-waste",
		"least-waste?bands=20": "cede policy load 'least-waste?bands=20' --activate, and then use the name least-waste; --name gives another name",
	} {
		if _, err := s.Select(name, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}
