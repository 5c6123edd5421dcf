package planner

import (
	"fmt"
	"testing"
	"time"
)

func TestTracker_DropsTheLeastRecentlyRejected(t *testing.T) {
	t.Parallel()
	tr := newTracker(RejectionTrackerConfig{Threshold: 3, Nodes: 4})
	for i := range 1000 {
		if tr.reject(fmt.Sprintf("n%d", i%5), int64(i)) {
			t.Fatal("a node that was forgotten between its rejections is marked")
		}
		if len(tr.recent) > 4 {
			t.Fatalf("%d nodes remembered", len(tr.recent))
		}
	}
	tr = newTracker(RejectionTrackerConfig{Threshold: 3, Nodes: 4, Burst: 1, Refill: time.Hour})
	marked := 0
	for i := range 1000 {
		if tr.reject("n", int64(i)) {
			marked++
		}
		for _, n := range tr.recent {
			if len(n.at) > 3 {
				t.Fatalf("%d times remembered", len(n.at))
			}
		}
	}
	if marked != 1 {
		t.Errorf("marked %d times within the hour", marked)
	}
}

func TestTracker_LimitsTheRateOfMarks(t *testing.T) {
	t.Parallel()
	tr := newTracker(RejectionTrackerConfig{Threshold: 1, Burst: 2, Refill: time.Minute})
	minute := int64(time.Minute)
	for i, want := range []bool{true, true, false} {
		if tr.reject(fmt.Sprint(i), 10*minute) != want {
			t.Errorf("rejection %d", i)
		}
	}
	if tr.reject("3", 11*minute-1) || !tr.reject("4", 11*minute) || tr.reject("5", 11*minute) {
		t.Error("one more after a minute")
	}
	if !tr.reject("6", 99*minute) || !tr.reject("7", 99*minute) || tr.reject("8", 99*minute) {
		t.Error("no more than a burst after a long pause")
	}
}

func TestTracker_OffByDefault(t *testing.T) {
	t.Parallel()
	tr := newTracker(RejectionTrackerConfig{})
	for i := range 10_000 {
		if tr.reject("n", int64(i)) || len(tr.recent) > 0 {
			t.Fatal("a tracker that is off does something")
		}
	}
}
