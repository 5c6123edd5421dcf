package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// change sends a request that changes a job, and returns the response.
func (w *fixture) change(path, body, key string) *client.JobRegisterResponse {
	w.t.Helper()
	resp, text := w.send("PUT", path, body, headerIdempotency, key)
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s", path, body, resp.StatusCode, text)
	}
	var r client.JobRegisterResponse
	w.check(json.Unmarshal([]byte(text), &r))
	return &r
}

// A repeated request to scale or to revert a job returns the first response, also after
// other changes of the job. Another request with its key is a conflict.
func TestChanges_RepeatedRequestReturnsFirstResponse(t *testing.T) {
	w := start(t)
	r := w.register(job("web", 50, 1, 1, 1))
	scale := fmt.Sprintf(`{"Count":2,"JobModifyIndex":%d}`, r.JobModifyIndex)
	for _, c := range []struct{ path, body string }{
		{"/v1/job/web/scale", scale},
		{"/v1/job/web/scale", `{"Count":3}`},
		{"/v1/job/web/revert", `{"JobVersion":0,"EnforcePriorVersion":4}`}, // each scale is followed by another
	} {
		key := "key of " + c.body
		first := w.change(c.path, c.body, key)
		w.change("/v1/job/web/scale", fmt.Sprintf(`{"Count":%d}`, 10+first.Index), "")
		again := w.change(c.path, c.body, key)
		if !again.Replayed || again.Index != first.Index || again.JobModifyIndex != first.JobModifyIndex || again.EvalID != first.EvalID {
			t.Errorf("%s %s: repeated %+v, first %+v", c.path, c.body, again, first)
		}
		resp, text := w.send("PUT", "/v1/job/web/scale", `{"Count":7}`, headerIdempotency, key)
		if resp.StatusCode != http.StatusConflict {
			t.Errorf("another request with the key of %s: %d %s", c.body, resp.StatusCode, text)
		}
	}
}

// A repeated request to change a job returns the first response also if the job was
// deleted meanwhile.
func TestChanges_RepeatedRequestOutlivesJob(t *testing.T) {
	w := start(t)
	w.register(job("web", 50, 1, 1, 1))
	first := w.change("/v1/job/web/scale", `{"Count":2}`, "k")
	if resp, text := w.send("DELETE", "/v1/job/web?purge=true", ""); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.StatusCode, text)
	}
	if again := w.change("/v1/job/web/scale", `{"Count":2}`, "k"); !again.Replayed || again.Index != first.Index || again.JobModifyIndex != first.JobModifyIndex {
		t.Errorf("repeated %+v, first %+v", again, first)
	}
	if resp, text := w.send("PUT", "/v1/job/web/scale", `{"Count":2}`); resp.StatusCode != http.StatusNotFound {
		t.Errorf("another request: %d %s", resp.StatusCode, text)
	}
}

// A job that is scaled or reverted retains its priority: a priority of 0, and that of a
// class which has changed or was deleted since.
func TestChanges_RetainPriority(t *testing.T) {
	w := start(t)
	for name, body := range map[string]string{"usual": `{"Value": 300, "GlobalDefault": true}`, "urgent": `{"Value": 900}`, "gone": `{"Value": 700}`} {
		if resp, text := w.send("PUT", "/v1/priority-class/"+name, body); resp.StatusCode != http.StatusOK {
			t.Fatal(resp.StatusCode, text)
		}
	}
	zero, urgent, gone := job("zero", 0, 1, 1, 1), job("urgent", 900, 1, 1, 1), job("gone", 700, 1, 1, 1)
	urgent.PriorityClass, gone.PriorityClass = "urgent", "gone"
	for _, j := range []*client.Job{zero, urgent, gone} {
		w.register(j)
	}
	for _, name := range []string{"urgent", "gone"} {
		_, err := w.client.PriorityClasses().Delete(t.Context(), name)
		w.check(err)
	}
	if resp, text := w.send("PUT", "/v1/priority-class/urgent", `{"Value": 100}`); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.StatusCode, text)
	}
	for id, want := range map[string]int{"zero": 0, "urgent": 900, "gone": 700} {
		for _, c := range []struct{ path, body string }{{"/scale", `{"Count":2}`}, {"/revert", `{"JobVersion":0}`}} {
			w.change("/v1/job/"+id+c.path, c.body, "")
			if j, _, err := w.client.Jobs().Get(t.Context(), id, nil); err != nil || *j.Priority != want {
				t.Errorf("%s %s%s: priority %d, %v; want %d", id, c.path, c.body, *j.Priority, err, want)
			}
		}
	}
}

// Concurrent requests to scale a job that require the index of the last response overwrite
// no version that their caller has not seen.
func TestScale_LosesNoUpdate(t *testing.T) {
	w := start(t)
	initial := w.register(job("web", 50, 1, 1, 1)).JobModifyIndex
	type write struct{ index, required uint64 }
	var mu sync.Mutex
	var writes []write
	var group sync.WaitGroup
	for caller := range 4 {
		group.Go(func() {
			known := initial
			for round := range 25 {
				body := fmt.Sprintf(`{"Count":%d,"JobModifyIndex":%d}`, 1+caller+4*round, known)
				resp, text := w.send("PUT", "/v1/job/web/scale", body, headerIdempotency, fmt.Sprint(caller, "-", round))
				var r client.JobRegisterResponse
				switch {
				case resp.StatusCode == http.StatusConflict:
					j, _, err := w.client.Jobs().Get(t.Context(), "web", nil)
					if err != nil {
						t.Error(err)
						return
					}
					known = j.JobModifyIndex
				case resp.StatusCode != http.StatusOK || json.Unmarshal([]byte(text), &r) != nil:
					t.Errorf("%s: %d %s", body, resp.StatusCode, text)
				default:
					mu.Lock()
					writes = append(writes, write{r.JobModifyIndex, known})
					mu.Unlock()
					known = r.JobModifyIndex
				}
			}
		})
	}
	group.Wait()
	slices.SortFunc(writes, func(a, b write) int { return int(a.index) - int(b.index) })
	previous := initial
	for _, write := range writes {
		if write.required != previous {
			t.Errorf("the write at %d required index %d and overwrote %d", write.index, write.required, previous)
		}
		previous = write.index
	}
	if len(writes) < 10 {
		t.Errorf("%d of 100 writes took effect", len(writes))
	}
}
