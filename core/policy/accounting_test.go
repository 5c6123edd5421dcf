package policy_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

func TestAcquireObserved_CallsBothObservers(t *testing.T) {
	t.Parallel()
	var version1, caller int
	v := version(t, &factory{name: "default"}, func(s *policy.Source) { s.Observe = func(policy.Call) { version1++ } })
	in, err := v.AcquireObserved(func(c policy.Call) {
		if c.Version == v.ID && c.Fuel == 7 {
			caller++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = in.PriorityDelta(&sdk.Candidates{FirstRow: []int32{0}}, nil, nil)
	v.Release(in)
	if version1 != 1 || caller != 1 {
		t.Errorf("the version's observer was called %d times, the caller %d times", version1, caller)
	}
	_ = acquire(t, v).PriorityDelta(&sdk.Candidates{FirstRow: []int32{0}}, nil, nil)
	if version1 != 2 || caller != 1 {
		t.Errorf("the kept instance called the version's observer %d times, the first caller %d times", version1, caller)
	}
}
