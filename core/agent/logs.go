package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/agent/logfile"
	"github.com/cede-scheduler/cede/sdk/client"
)

// The headers of what a task said.
const (
	headerOffset = "X-Cede-Log-Offset" // of the first byte that is sent
	headerTask   = "X-Cede-Task"
)

// Handler serves what allocations of this node said:
//
//	GET /v1/allocation/{id}/logs?task=&stream=stdout|stderr&offset=&follow=
//
// The id may be any prefix that is unique here. An offset below zero counts from
// the end. With follow the answer ends when the task does.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/allocation/{id}/logs", func(w http.ResponseWriter, r *http.Request) {
		if err := a.serveLogs(w, r); err != nil {
			writeError(w, err)
		}
	})
	return mux
}

// Has is whether the agent knows the allocation with this id, or with ids that
// begin like that.
func (a *Agent) Has(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for known := range a.runners {
		if id != "" && strings.HasPrefix(known, id) {
			return true
		}
	}
	return false
}

// question is what somebody wants to read.
type question struct {
	base   string // of the stream's files
	task   string
	offset int64
	follow bool
	gone   <-chan struct{}
}

func (a *Agent) serveLogs(w http.ResponseWriter, r *http.Request) error {
	q, err := a.question(r)
	if err != nil {
		return err
	}
	if q.offset < 0 {
		_, end, err := logfile.Bounds(q.base)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		q.offset = max(end+q.offset, 0)
	}
	return copyLogs(r.Context(), w, q)
}

// question reads and checks a request.
func (a *Agent) question(r *http.Request) (*question, error) {
	q := &question{}
	values := r.URL.Query()
	var problems []string
	number := func(name string) (n int64) {
		if text := values.Get(name); text != "" {
			var err error
			if n, err = strconv.ParseInt(text, 10, 64); err != nil {
				problems = append(problems, fmt.Sprintf("%s=%s is no number of bytes", name, text))
			}
		}
		return n
	}
	q.offset = number("offset")
	if text := values.Get("follow"); text != "" {
		var err error
		if q.follow, err = strconv.ParseBool(text); err != nil {
			problems = append(problems, fmt.Sprintf("follow=%s is neither true nor false", text))
		}
	}
	stream := values.Get("stream")
	if stream == "" {
		stream = values.Get("type") // as Nomad calls it
	}
	switch stream {
	case "":
		stream = "stdout"
	case "stdout", "stderr":
	default:
		problems = append(problems, fmt.Sprintf("stream=%s is neither stdout nor stderr", stream))
	}
	if len(problems) > 0 {
		return nil, &client.Error{StatusCode: http.StatusBadRequest, Code: client.CodeInvalid, Message: strings.Join(problems, "; "), Details: map[string]any{"Problems": problems}}
	}
	return q, a.locate(r, q, values.Get("task"), stream)
}

// locate finds the stream, and asks whether the caller may read it.
func (a *Agent) locate(r *http.Request, q *question, task, stream string) error {
	run, err := a.find(r.PathValue("id"))
	if err != nil {
		return err
	}
	alloc := run.alloc
	if a.c.Authorize != nil {
		if err := a.c.Authorize(r.Context(), bearer(r), alloc.ID); err != nil {
			return err
		}
	}
	var names []string
	for _, t := range alloc.Tasks {
		names = append(names, t.Name)
	}
	if task == "" && len(names) == 1 {
		task = names[0]
	}
	known := false
	for _, n := range names {
		known = known || n == task
	}
	switch {
	case task == "" && len(names) > 1:
		return &client.Error{StatusCode: http.StatusBadRequest, Code: client.CodeInvalid, Message: "the allocation has several tasks", Hint: "name one: task=" + strings.Join(names, ", task=")}
	case !known:
		return &client.Error{StatusCode: http.StatusNotFound, Code: client.CodeNotFound, Message: fmt.Sprintf("allocation %s has no task %q", alloc.ID, task), Hint: "its tasks are " + strings.Join(names, ", ")}
	}
	q.task, q.gone = task, run.gone
	q.base = filepath.Join(a.disk.task(alloc.ID, task), stream)
	return nil
}

// find finds an allocation by its id or a unique beginning of it.
func (a *Agent) find(id string) (*runner, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.runners[id]; r != nil {
		return r, nil
	}
	var found []*runner
	for known, r := range a.runners {
		if strings.HasPrefix(known, id) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return nil, &client.Error{
			StatusCode: http.StatusNotFound, Code: client.CodeNotFound,
			Message: fmt.Sprintf("node %s knows no allocation %q", a.node.ID, id), Hint: "one that was placed just now may not be here yet, and what one said goes a while after its end; `cede alloc status` tells where it ran",
		}
	case 1:
		return found[0], nil
	}
	return nil, &client.Error{StatusCode: http.StatusBadRequest, Code: client.CodeInvalid, Message: fmt.Sprintf("%d allocations begin with %q", len(found), id), Hint: "give more of the id"}
}

// bearer is the caller's token.
func bearer(r *http.Request) string {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return t
	}
	return r.Header.Get("X-Nomad-Token")
}

// lookAgain is how often a stream that is followed is looked at.
const lookAgain = 100 * time.Millisecond

// copyLogs sends a stream from an offset on: what is there, or with follow until
// the allocation is over or the caller goes.
func copyLogs(ctx context.Context, w http.ResponseWriter, q *question) error {
	b := make([]byte, 64<<10)
	begun := false
	for ctx.Err() == nil {
		over := isClosed(q.gone) // before reading: what is written last is read too
		n, from, err := logfile.ReadAt(q.base, b, q.offset)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			if begun {
				return nil // too late for an error; the answer breaks off
			}
			return err
		}
		if !begun {
			h := w.Header()
			h.Set("Content-Type", "text/plain; charset=utf-8")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set(headerOffset, strconv.FormatInt(from, 10))
			h.Set(headerTask, q.task)
			w.WriteHeader(http.StatusOK)
			begun = true
		}
		if _, err := w.Write(b[:n]); err != nil {
			return nil //nolint:nilerr // the caller went
		}
		q.offset = from + int64(n)
		if n > 0 {
			continue
		}
		if !q.follow || over {
			return nil
		}
		_ = http.NewResponseController(w).Flush() // a writer that cannot is no writer of ours
		sleep(ctx, lookAgain)
	}
	return nil // the caller went
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// writeError answers in the API's form.
func writeError(w http.ResponseWriter, err error) {
	var e *client.Error
	if !errors.As(err, &e) {
		e = &client.Error{StatusCode: http.StatusInternalServerError, Code: client.CodeInternal, Message: err.Error()}
	}
	if e.StatusCode == 0 {
		e.StatusCode = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.StatusCode)
	_ = json.NewEncoder(w).Encode(e) // the caller may have gone
}
