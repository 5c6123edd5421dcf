package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/comparisons"
	"github.com/cede-scheduler/cede/sdk/client"
)

// startComparisons starts a fixture in which comparisons fail, because no program plays them.
func startComparisons(t *testing.T) (*fixture, *comparisons.Queue) {
	t.Helper()
	q := comparisons.NewQueue(comparisons.Config{Command: []string{"/nonexistent/cede"}, Limits: comparisons.Limits{Input: 1000, Seeds: 5}})
	t.Cleanup(q.Stop)
	return start(t, func(c *Config) { c.Comparisons = q }), q
}

func TestComparisons_ReportStateAndErrors(t *testing.T) {
	w, _ := startComparisons(t)
	resp, text := w.send("POST", "/v1/comparisons", `{"Text":"version: 1\nname: x\n","Policies":["default","kubernetes"]}`)
	var c client.Comparison
	if err := json.Unmarshal([]byte(text), &c); err != nil || resp.StatusCode != http.StatusOK || c.ID == "" || c.Name != "scenario.yaml" || c.Seeds != 1 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	for c.Ended == 0 {
		_, text = w.send("GET", "/v1/comparison/"+c.ID+"?after=1&wait=30s", "")
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
	}
	if c.Status != "failed" || c.Error == nil || !strings.Contains(c.Error.Message, "start process") {
		t.Errorf("%s", text)
	}
	for _, step := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/v1/comparisons", http.StatusOK, `"Input":1000`},
		{"GET", "/v1/comparisons", http.StatusOK, `"Name":"contended"`},
		{"GET", "/v1/comparison/" + c.ID + "/report", http.StatusConflict, "has no report"},
		{"GET", "/v1/comparison/" + c.ID + "?after=x", http.StatusBadRequest, "invalid after="},
		{"DELETE", "/v1/comparison/" + c.ID, http.StatusOK, c.ID},
		{"GET", "/v1/comparison/" + c.ID, http.StatusNotFound, "belong to the server that received them"},
		{"DELETE", "/v1/comparison/" + c.ID, http.StatusNotFound, "not found"},
	} {
		if resp, text := w.send(step.method, step.path, ""); resp.StatusCode != step.status || !strings.Contains(text, step.want) {
			t.Errorf("%s %s: %d %s", step.method, step.path, resp.StatusCode, text)
		}
	}
}

func TestComparisons_ListAllProblemsOfARequest(t *testing.T) {
	w, q := startComparisons(t)
	for body, want := range map[string][]string{
		`{"Policies":["default"],"Seeds":6}`:                                               {"either Text or Preset is required", "Policies must name between 2 and 6 policies", "Seeds must be between 1 and 5"},
		`{"Text":"a","Preset":"contended","Policies":["default","default","./x.so"]}`:      {"either Text or Preset is required", `duplicate policy`, `unknown policy`},
		`{"Preset":"nothing","Policies":["default","kubernetes@12"]}`:                      {`unknown Preset`, `unknown version`},
		`{"Text":"` + strings.Repeat("x", 1001) + `","Policies":["default","kubernetes"]}`: {"Text must be at most 1000 bytes"},
		`{"Text":"a","Policies":["default","kubernetes"],"Executable":"/bin/true"}`:        {"Executable"},
	} {
		resp, text := w.send("POST", "/v1/comparisons", body)
		for _, part := range want {
			if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, part) {
				t.Errorf("%.80s: %d %s lacks %q", body, resp.StatusCode, text, part)
			}
		}
	}
	if list := q.List(); len(list) != 0 {
		t.Errorf("%d comparisons were queued", len(list))
	}
}

// A request is refused before its body is read if another comparison waits.
func TestComparisons_RefuseBeforeReadingIfOneWaits(t *testing.T) {
	w, q := startComparisons(t)
	release, err := q.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	resp, text := w.send("POST", "/v1/comparisons", `not JSON`)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, "waits on this server already") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
	}
	without := start(t)
	if resp, text := without.send("GET", "/v1/comparisons", ""); resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "cede compare") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
