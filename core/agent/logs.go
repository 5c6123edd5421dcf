package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
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
//	GET /v1/client/fs/logs/{id}?task=&type=stdout|stderr&origin=start|end&offset=&follow=&plain=
//
// The ID may be any prefix that is unique on this node. A negative offset counts from
// the end. With follow, the response ends when the task ends. The second path is that
// of Nomad's clients: the offset counts from the origin, and the output is sent as a
// sequence of JSON frames, unless plain is true.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	serve := func(nomad bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := a.serveLogs(w, r, nomad); err != nil {
				writeError(w, err)
			}
		}
	}
	mux.HandleFunc("GET /v1/allocation/{id}/logs", serve(false))
	mux.HandleFunc("GET /v1/client/fs/logs/{id}", serve(true))
	return mux
}

// Has reports whether the node has an allocation whose ID begins with this prefix.
func (a *Agent) Has(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other := range a.runners {
		if id != "" && strings.HasPrefix(other, id) {
			return true
		}
	}
	return false
}

// logRequest is a request for output.
type logRequest struct {
	base   string // base path of the stream's files
	task   string
	stream string
	offset int64 // of the first byte; with fromEnd, from the end
	follow bool
	gone   <-chan struct{}

	fromEnd bool
	framed  bool // as a sequence of frames
}

func (a *Agent) serveLogs(w http.ResponseWriter, r *http.Request, nomad bool) error {
	q, err := a.question(r)
	if err != nil {
		return err
	}
	q.fromEnd = q.offset < 0
	if nomad {
		if err := q.readNomad(r); err != nil {
			return err
		}
	}
	if q.fromEnd {
		_, end, err := logfile.Bounds(q.base)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		q.offset = max(end+q.offset, 0)
	}
	return copyLogs(r.Context(), w, q)
}

// readNomad reads the parameters that only Nomad's clients send.
func (q *logRequest) readNomad(r *http.Request) error {
	values := r.URL.Query()
	switch origin := values.Get("origin"); origin {
	case "", "start":
		q.offset = max(q.offset, 0)
		q.fromEnd = false
	case "end":
		q.offset = -max(q.offset, -q.offset)
		q.fromEnd = true
	default:
		return &client.Error{StatusCode: http.StatusBadRequest, Code: client.CodeInvalid, Message: fmt.Sprintf("invalid origin=%s: must be start or end", origin)}
	}
	plain, err := strconv.ParseBool(cmp.Or(values.Get("plain"), "false"))
	if err != nil {
		return &client.Error{StatusCode: http.StatusBadRequest, Code: client.CodeInvalid, Message: fmt.Sprintf("invalid plain=%s: must be true or false", values.Get("plain"))}
	}
	q.framed = !plain
	return nil
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
	switch {
	case task == "" && len(names) > 1:
		return &client.Error{StatusCode: http.StatusBadRequest, Code: client.CodeInvalid, Message: fmt.Sprintf("allocation %s has several tasks", alloc.ID), Hint: "select one: task=" + strings.Join(names, ", task=")}
	case !slices.Contains(names, task):
		return &client.Error{StatusCode: http.StatusNotFound, Code: client.CodeNotFound, Message: fmt.Sprintf("allocation %s has no task %q", alloc.ID, task), Hint: "its tasks are " + strings.Join(names, ", ")}
	}
	q.task, q.stream, q.gone = task, stream, run.gone
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
	for other, r := range a.runners {
		if strings.HasPrefix(other, id) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return nil, &client.Error{
			StatusCode: http.StatusNotFound, Code: client.CodeNotFound,
			Message: fmt.Sprintf("allocation %q not found on node %s", id, a.node.ID), Hint: "an allocation that was placed moments ago may not have arrived yet, and logs are deleted some time after the end of an allocation; `cede alloc status` shows its node",
		}
	case 1:
		return found[0], nil
	}
	return nil, &client.Error{StatusCode: http.StatusBadRequest, Code: client.CodeInvalid, Message: fmt.Sprintf("ambiguous allocation prefix %q: %d allocations match", id, len(found)), Hint: "use a longer prefix"}
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
			h.Set("Content-Type", q.contentType())
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set(headerOffset, strconv.FormatInt(from, 10))
			h.Set(headerTask, q.task)
			w.WriteHeader(http.StatusOK)
			begun = true
		}
		if err := q.write(w, from, b[:n]); err != nil {
			return nil //nolint:nilerr // the caller has disconnected
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

func (q *logRequest) contentType() string {
	if q.framed {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// write sends a part of the output that starts at offset from.
func (q *logRequest) write(w io.Writer, from int64, data []byte) error {
	if !q.framed {
		_, err := w.Write(data)
		return err
	}
	if len(data) == 0 {
		return nil
	}
	return json.NewEncoder(w).Encode(logFrame{Offset: from, Data: data, File: q.task + "." + q.stream + ".0"})
}

// A logFrame is a part of a task's output, in Nomad's form.
type logFrame struct {
	Offset int64  `json:",omitempty"`
	Data   []byte `json:",omitempty"`
	File   string `json:",omitempty"`
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
	e.StatusCode = cmp.Or(e.StatusCode, http.StatusInternalServerError)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.StatusCode)
	_ = json.NewEncoder(w).Encode(e) // an error means that the client is gone
}
