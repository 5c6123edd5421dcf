package api

import (
	"fmt"
	"net/http"
	"runtime"
	runtimemetrics "runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Small requests for many instances cost a server little memory: they are refused, or their
// cost is bounded. Every path that writes or plans a job has the same limits.
func TestAdmission_BoundsTheMemoryOfHostileRequests(t *testing.T) {
	w := start(t)
	w.addNode("n1", 1000, 1000)
	w.register(job("web", 50, 1, 10, 10))
	const huge = `"Count": 10000000`
	group := func(name, count string) string {
		return fmt.Sprintf(`{"Name": %q, %s, "Tasks": [{"Name": "t", "Driver": "sim"}]}`, name, count)
	}
	jobOf := func(id string, groups ...string) string {
		return fmt.Sprintf(`{"Job": {"ID": %q, "Name": %q, "Type": "batch", "Datacenters": ["dc1"], "TaskGroups": [%s]}}`, id, id, strings.Join(groups, ","))
	}
	var many, tasks, allAtLimit []string
	for i := range 1001 {
		many = append(many, group(fmt.Sprint("g", i), `"Count": 0`))
	}
	for i := range 101 {
		tasks = append(tasks, fmt.Sprintf(`{"Name": "t%d", "Driver": "sim"}`, i))
	}
	for i := range 100 {
		allAtLimit = append(allAtLimit, group(fmt.Sprint("g", i), `"Count": 100000`))
	}
	requests := []struct{ method, path, body, key string }{
		{http.MethodPut, "/v1/jobs", jobOf("a", group("g", huge)), "group_count"},
		{http.MethodPut, "/v1/jobs", jobOf("a", allAtLimit...), "job_allocations"},
		{http.MethodPut, "/v1/jobs", jobOf("a", many...), ""},
		{http.MethodPut, "/v1/jobs", jobOf("a", `{"Name": "g", "Tasks": [`+strings.Join(tasks, ",")+`]}`), ""},
		{http.MethodPut, "/v1/job/a/plan", jobOf("a", group("g", huge)), "group_count"},
		{http.MethodPut, "/v1/job/web/scale", `{"Target": {"Group": "app"}, ` + huge + `}`, "group_count"},
		{http.MethodPut, "/v1/binding/b", `{"ID": "b", "Replicas": 100000000, "Resources": {"cpu": 1}}`, ""},
	}
	peak, stop := watchHeap()
	for _, r := range requests {
		response, text := w.send(r.method, r.path, r.body, "Content-Type", "application/json")
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(text, "limits.admission."+r.key) && r.key != "" {
			t.Errorf("%s %s %.80s: %d %.300s, want 400 with %s", r.method, r.path, r.body, response.StatusCode, text, r.key)
		}
	}
	// The greatest job that is accepted.
	w.awaitEval(w.register(job("large", 50, 100_000, 10, 10)).EvalID)
	stop()
	const ceiling = 256 << 20
	if grown := peak.Load(); grown > ceiling {
		t.Errorf("the heap grew by %d MiB, at most %d are allowed", grown>>20, ceiling>>20)
	}
}

// watchHeap measures the heap until stop is called; peak is the growth in bytes.
func watchHeap() (peak *atomic.Int64, stop func()) {
	sample := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() int64 {
		runtimemetrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before := read()
	peak, done, ended := new(atomic.Int64), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			peak.Store(max(peak.Load(), read()-before))
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return peak, func() { close(done); <-ended }
}
