package worker

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// Planning takes a while. What a policy wants to be asked about again a moment
// later must not be lost because that moment has passed meanwhile.
func TestEndings_ARecheckThatCameWhileThePlanWasMadeIsKept(t *testing.T) {
	begun := time.Unix(1000, 0)
	w := New(Config{Clock: clock.NewVirtual(begun.Add(time.Second)), NewEvalID: func() string { return "new" }})
	for recheck, want := range map[int64]bool{
		begun.Add(time.Millisecond).UnixNano(): true,
		begun.UnixNano():                       false, // asks for what it has just been asked
		0:                                      false,
	} {
		out := &scheduler.Outcome{
			Plan: &model.Plan{Now: begun.UnixNano()}, RecheckAt: recheck,
			Failed: map[string]*model.Explanation{"g": {}},
		}
		got := false
		for _, e := range w.endings(&model.Evaluation{ID: "e", JobID: "j"}, state.New().Snapshot(), out) {
			got = got || e.TriggeredBy == model.TriggerRecheck && e.WaitUntil == recheck
		}
		if got != want {
			t.Errorf("recheck at %d, planned at %d: queued %v, want %v", recheck, begun.UnixNano(), got, want)
		}
	}
}
