package policy_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
)

const second = int64(time.Second)

func TestBreaker_OpensAfterFaultsInARowForLongerEachTime(t *testing.T) {
	t.Parallel()
	var b policy.Breaker
	why := errors.New("why")
	now := int64(1000)
	for i := range 4 {
		if b.RecordFault(now, why) || b.OpenError(now) != nil {
			t.Fatalf("open after %d faults", i+1)
		}
	}
	b.RecordSuccess() // the row is broken
	for range 4 {
		b.RecordFault(now, why)
	}
	if !b.RecordFault(now, why) || !errors.Is(b.OpenError(now), why) {
		t.Fatal("not open after five in a row")
	}
	for _, pause := range []int64{30, 60, 120, 240, 480, 600, 600} {
		if b.OpenError(now+pause*second-1) == nil {
			t.Errorf("closed before %d s", pause)
		}
		now += pause * second
		if b.OpenError(now) != nil {
			t.Errorf("still open after %d s: no evaluation tries", pause)
		}
		if !b.RecordFault(now, why) { // the one that tried failed again
			t.Error("one more fault does not open it again")
		}
	}
	b.RecordSuccess()
	if b.OpenError(now) != nil {
		t.Error("open although it went well")
	}
}

func TestParseOnFault(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]policy.OnFault{"": policy.Deny, "deny": policy.Deny, "default": policy.FallBack} {
		if got, err := policy.ParseOnFault(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := policy.ParseOnFault("allow"); err == nil {
		t.Error("allow was accepted")
	}
}
