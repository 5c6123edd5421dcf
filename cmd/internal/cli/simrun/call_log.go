package simrun

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/policy"
)

// callLog writes every call of a policy to a file, as JSON lines.
type callLog struct {
	pipe *io.PipeWriter
	done chan error

	mu   sync.Mutex
	w    *bufio.Writer
	json *json.Encoder
	err  error
}

// newCallLog opens the file before the run, so that a long run does not end with a
// write error.
func newCallLog(env *cmdutil.Env, name string) (*callLog, error) {
	from, to := io.Pipe()
	opened := make(chan struct{})
	l := &callLog{pipe: to, done: make(chan error, 1), w: bufio.NewWriterSize(to, 1<<16)}
	l.json = json.NewEncoder(l.w)
	l.json.SetEscapeHTML(false)
	go func() {
		err := env.Write(name, func(w io.Writer) error {
			close(opened)
			_, err := io.Copy(w, from)
			return err
		})
		_ = from.CloseWithError(err) // later writes return this error
		l.done <- err
	}()
	select {
	case <-opened:
		return l, nil
	case err := <-l.done:
		return nil, err
	}
}

// loggedCall is a line of the log.
type loggedCall struct {
	Policy      string `json:"policy"`
	Version     string `json:"version"`
	Digest      string `json:"digest"`
	Hook        string `json:"hook"`
	Options     int    `json:"options"`
	Rows        int    `json:"rows"`
	Fuel        uint64 `json:"fuel,omitempty"`
	Nanoseconds int64  `json:"nanoseconds"`
	Error       string `json:"error,omitempty"`
}

// observer returns the function that records calls, or nil if no log is written.
func (l *callLog) observer() func(policy.Call) {
	if l == nil {
		return nil
	}
	return l.add
}

func (l *callLog) add(c policy.Call) {
	line := loggedCall{
		Policy: c.Policy, Version: c.Version, Digest: c.Digest, Hook: c.Hook, Options: c.Options, Rows: c.Rows,
		Fuel: c.Fuel, Nanoseconds: c.Duration.Nanoseconds(),
	}
	if c.Err != nil {
		line.Error = c.Err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.json.Encode(line)
	}
}

// close ends the file and returns the error of writing it, if any.
func (l *callLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.w.Flush()    // the error is returned by the reader
	_ = l.pipe.Close() // never fails
	if err := <-l.done; err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}
