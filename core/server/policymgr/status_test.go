package policymgr

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

func TestIdleReason_NamesWhatPreventsMeasures(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		preempts     bool
		policy, jobs string // of the settings, of a job
		want         string // "": no reason
	}{
		{true, "p", "", ""},
		{true, "", "p", ""},
		{true, "", "other", "no job uses policy p"},
		{true, "other", "", "no job uses policy p"},
		{false, "p", "p", "preemption is off"},
	} {
		config := coretest.AllPreempt()
		config.Policy = tc.policy
		if !tc.preempts {
			config.Preemption = [model.EvalTypes]bool{}
		}
		store := state.New()
		txn := store.Begin(1)
		txn.ConfigWriter().Set(config)
		txn.Commit()
		snap := coretest.PutJobs(store, coretest.Job("web").Change(func(j *model.Job) { j.Policy = tc.jobs }).Obj())
		got := idleReason(snap, "p")
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}
