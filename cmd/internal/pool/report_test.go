package pool

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A server refuses large reports. Every decision that fits arrives once and in order, and
// the one that never fits is dropped and counted.
func TestReporter_SplitsReportsThatAreTooLarge(t *testing.T) {
	const limit = 8 << 10
	var nodes []string
	var lost int64
	requests := 0
	c := connect(t, func(w http.ResponseWriter, req *http.Request) {
		requests++
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		if len(body) > limit || requests > 1000 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		var r client.KubernetesReport
		if err := json.Unmarshal(body, &r); err != nil {
			t.Error(err)
		}
		for _, d := range r.Decisions {
			nodes = append(nodes, d.Node)
		}
		lost = r.Lost
	})
	r := NewReporter(c, func() client.KubernetesController { return client.KubernetesController{ID: "c1"} }, func() string { return "" }, slog.New(slog.DiscardHandler))
	var want []string
	for i := range 600 {
		d := extender.Decision{Node: fmt.Sprint("n", i)}
		if i == 100 {
			d.Problem = strings.Repeat("x", limit)
		} else {
			want = append(want, d.Node)
		}
		r.Add(d)
	}
	if err := r.report(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(nodes, want) {
		t.Errorf("%d decisions arrived, want %d", len(nodes), len(want))
	}
	if lost != 1 || len(r.waiting) != 0 {
		t.Errorf("%d decisions are lost and %d wait, want 1 and 0", lost, len(r.waiting))
	}
	if requests > 100 {
		t.Errorf("%d requests", requests)
	}
}

// A change of the policy or of readiness is reported at once, and numbers of pods are not.
func TestReporter_ReportsChangesAtOnce(t *testing.T) {
	reports := 0
	c := connect(t, func(http.ResponseWriter, *http.Request) { reports++ })
	state := client.KubernetesController{ID: "c1"}
	r := NewReporter(c, func() client.KubernetesController { return state }, func() string { return "" }, slog.New(slog.DiscardHandler))
	for _, tt := range []struct {
		name   string
		change func()
		want   int
	}{
		{"ready", func() { state.Ready = true }, 1},
		{"nothing", func() {}, 1},
		{"pods", func() { state.Pods++ }, 1},
		{"version", func() { state.PolicyVersion = "v2" }, 2},
		{"problem", func() { state.PolicyProblem = "invalid" }, 3},
		{"no problem", func() { state.PolicyProblem = "" }, 4},
	} {
		tt.change()
		if err := r.report(t.Context(), false); err != nil || reports != tt.want {
			t.Errorf("%s: %d reports, %v, want %d", tt.name, reports, err, tt.want)
		}
	}
}
