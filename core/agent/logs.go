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

// The headers of a task's output.
const (
	headerOffset = "X-Cede-Log-Offset" // of the first byte of the response
	headerTask   = "X-Cede-Task"
)

// Handler serves the output of this node's allocations:
//
//	GET /v1/allocation/{id}/logs?task=&stream=stdout|stderr&offset=&follow=
//
// The ID may be any prefix that is unique on this node. A negative offset counts from
// the end. With follow, the response ends when the task ends.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/allocation/{id}/logs", func(w http.ResponseWriter, r *http.Request) {
		if err := a.serveLogs(w, r); err != nil {
			writeError(w, err)
		}
	})
	return mux
}

// Has reports whether the node has an allocation whose ID begins with this prefix.
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

// logRequest is a request for output.
type logRequest struct {
	base   string // base path of the stream's files
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

// question parses and checks a request.
func (a *Agent) question(r *http.Request) (*logRequest, error) {
	q := &logRequest{}
	values := r.URL.Query()
	var problems []string
	number := func(name string) (n int64) {
		if text := values.Get(name); text != "" {
			var err error
			if n, err = strconv.ParseInt(text, 10, 64); err != nil {
				problems = append(problems, fmt.Sprintf("invalid %s=%s: must be a number of bytes", name, text))
			}
		}
		return n
	}
	q.offset = number("offset")
	if text := values.Get("follow"); text != "" {
		var err error
		if q.follow, err = strconv.ParseBool(text); err != nil {
			problems = append(problems, fmt.Sprintf("invalid follow=%s: must be true or false", text))
		}
	}
	stream := values.Get("stream")
	if stream == "" {
		stream = values.Get("type") // Nomad's name of the parameter
	}
	switch stream {
	case "":
		stream = "stdout"
	case "stdout", "stderr":
	default:
		problems = append(problems, fmt.Sprintf("invalid stream=%s: must be stdout or stderr", stream))
	}
	if len(problems) > 0 {
		return nil, &client.Error{StatusCode: http.StatusBadRequest, Code: client.CodeInvalid, Message: strings.Join(problems, "; "), Details: map[string]any{"Problems": problems}}
	}
	return q, a.locate(r, q, values.Get("task"), stream)
}

// locate finds the stream. It returns an error if the caller may not read it.
func (a *Agent) locate(r *http.Request, q *logRequest, task, stream string) error {
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

// find returns an allocation by its ID or a unique prefix of it.
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
	return nil, &client.Error{StatusCode: http.StatusBadRequest, Code: client.CodeInvalid, Message: fmt.Sprintf("%d allocations begin with %q", len(found), id), Hint: "give a longer prefix"}
}

// bearer returns the caller's token.
func bearer(r *http.Request) string {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return t
	}
	return r.Header.Get("X-Nomad-Token")
}

// followInterval is how often a followed stream is read.
const followInterval = 100 * time.Millisecond

// copyLogs sends a stream from an offset: the existing bytes, or with follow until
// the allocation ends or the client closes the connection.
func copyLogs(ctx context.Context, w http.ResponseWriter, q *logRequest) error {
	b := make([]byte, 64<<10)
	begun := false
	for ctx.Err() == nil {
		over := isClosed(q.gone) // checked before reading, so that the last bytes are read too
		n, from, err := logfile.ReadAt(q.base, b, q.offset)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			if begun {
				return nil // the response has started; it is truncated
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
		_ = http.NewResponseController(w).Flush() // an error surfaces at the next write
		sleep(ctx, followInterval)
	}
	return nil // the client closed the connection
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// writeError sends an error in the API's format.
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
	_ = json.NewEncoder(w).Encode(e) // an error means that the client is gone
}
