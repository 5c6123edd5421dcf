package server

import (
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

// An evaluation cannot be cancelled while a worker processes it, and can after the worker
// has returned it. The worker's result stands.
func TestCancelEvals_RefusesDeliveredEvaluation(t *testing.T) {
	runServers(t, 1, func(c *Config) { c.Workers = -1 }, func(w *harness) {
		r := w.registerJob(coretest.Job("web").Count(1).Ask(500, 500, 0))
		s := w.leader().server
		local := s.queue.Local()
		anyNamespace := func(string) bool { return true }
		list, err := local.DequeueBatch(w.ctx, 1, time.Minute)
		if err != nil || len(list) != 1 || list[0].Eval.ID != r.EvalID {
			t.Fatalf("delivered %v, %v", list, err)
		}
		_, err = s.CancelEvals(w.ctx, []string{r.EvalID}, anyNamespace)
		if apierror.CodeOf(err) != apierror.CodeConflict || !strings.Contains(err.Error(), "is being processed") {
			t.Errorf("cancelling a delivered evaluation: %v", err)
		}
		if err := local.Renew(w.ctx, r.EvalID, list[0].Token); err != nil {
			t.Errorf("the refused call ended the delivery: %v", err)
		}
		if err := local.Nack(w.ctx, r.EvalID, list[0].Token); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CancelEvals(w.ctx, []string{r.EvalID}, anyNamespace); err != nil {
			t.Errorf("cancelling a returned evaluation: %v", err)
		}
		if e := w.snap().Eval(r.EvalID); e.Status != model.EvalCancelled {
			t.Errorf("the evaluation is %s", e.Status)
		}
		if list, err := local.DequeueBatch(w.ctx, 1, time.Hour); err != nil || len(list) != 0 {
			t.Errorf("a cancelled evaluation was delivered: %v, %v", list, err)
		}
	})
}
