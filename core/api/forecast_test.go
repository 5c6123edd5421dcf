package api

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// A waiting job has a position; a reason replaces times that cannot be predicted.
func TestJobForecast_StatesPositionOrReason(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 1000, 1000)
	w.register(job("runs", 50, 1, 900, 900))
	w.reportRunning()
	w.register(job("later", 40, 2, 900, 900))
	w.register(job("first", 60, 1, 900, 900))
	of := func(id string) *client.JobForecast {
		t.Helper()
		f, _, err := w.client.Jobs().Forecast(ctx, id, nil)
		w.check(err)
		return f
	}
	if f := of("first"); f.Position != 1 || f.QueueLength != 2 || f.Waiting != 1 || f.EvalID == "" || f.Since == 0 || f.First != nil ||
		f.Running != 1 || f.Ending != 0 || !strings.HasPrefix(f.Reason, "the ends of the running instances (1) cannot be predicted") {
		t.Errorf("%+v", f)
	}
	if f := of("later"); f.Position != 2 || f.Waiting != 2 {
		t.Errorf("%+v", f)
	}
	if f := of("runs"); f.Position != 0 || f.Reason != "no instance of the job waits in the queue" {
		t.Errorf("%+v", f)
	}
	_, err := w.client.Operator().BrokerPause(ctx)
	w.check(err)
	if f := of("first"); !strings.Contains(f.Reason, "paused") || f.Position != 0 {
		t.Errorf("%+v", f)
	}
	if _, _, err := w.client.Jobs().Forecast(ctx, "missing", nil); !client.IsNotFound(err) {
		t.Error(err)
	}
}
