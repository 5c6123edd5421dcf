package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// EventStreams holds the calls for event streams; see Client.Events.
type EventStreams struct{ c *Client }

// StreamOptions selects events and the start of a stream.
type StreamOptions struct {
	Namespace string   // "*": all; "": the client's
	Topics    []string // TOPIC or TOPIC:KEY; empty: all
	Index     uint64   // the stream starts after this index; 0: at the current one
}

// errStop ends a stream at the caller's request.
var errStop = errors.New("stop")

// Stream calls each for the events of one index after another, until each returns an
// error, which Stream returns, or ctx ends. If a connection is lost, the stream
// resumes at the same position, on another server if necessary; no event is repeated.
// If events are missing because the server no longer retains them, Events.Lost is
// set.
func (s EventStreams) Stream(ctx context.Context, o *StreamOptions, each func(*Events) error) error {
	at := &streamPosition{}
	if o != nil {
		at.StreamOptions = *o
	}
	if at.Index > 0 {
		at.last = strconv.FormatUint(at.Index, 10)
	}
	for attempt := 0; ; attempt++ {
		at.connected = false
		err := s.streamOnce(ctx, at, each)
		if at.connected {
			attempt = 0
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if gave, ok := errors.AsType[*callerError](err); ok {
			return gave.err
		}
		if !transient(err) || attempt >= s.c.attempts() {
			return err
		}
		if !sleep(ctx, s.c.backoff(attempt)) {
			return ctx.Err()
		}
	}
}

// streamPosition is the position of a stream.
type streamPosition struct {
	StreamOptions
	last      string // ID of the last message
	connected bool   // a server has accepted the stream
}

// callerError wraps the error of the callback, to distinguish it from the stream's.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// transient reports whether a stream that ended with err is resumed.
func transient(err error) bool {
	e := asError(err)
	return e == nil || e.Code == CodeNoLeader || e.Code == CodeUnavailable || e.Code == CodeRateLimited
}

// streamOnce processes one connection of a stream.
func (s EventStreams) streamOnce(ctx context.Context, o *streamPosition, each func(*Events) error) error {
	r := s.c.call(http.MethodGet, "event", "stream")
	r.header.Set("Accept", "text/event-stream")
	r.namespace(o.Namespace)
	for _, topic := range o.Topics {
		r.query.Add("topic", topic)
	}
	if o.last != "" {
		r.header.Set("Last-Event-ID", o.last)
	}
	resp, err := r.send(ctx)
	if err != nil {
		return err
	}
	o.connected = true
	defer func() { _ = resp.Body.Close() }()
	lines := frames{r: newReader(resp.Body)}
	for {
		f, err := lines.next()
		if err != nil {
			return err
		}
		batch, err := f.read()
		if err != nil {
			return &callerError{fmt.Errorf("event stream: %w", err)}
		}
		if batch != nil {
			if err := each(batch); err != nil {
				return &callerError{err}
			}
		}
		if f.id != "" {
			o.last = f.id
		}
	}
}

// frame is one server-sent event.
type frame struct {
	id    string
	event string
	data  []byte
}

// read returns the events of a message, or nil if its type is unknown.
func (f *frame) read() (*Events, error) {
	switch f.event {
	case "events":
		batch := &Events{}
		return batch, json.Unmarshal(f.data, batch)
	case "ahead":
		batch := &Events{}
		return batch, json.Unmarshal(f.data, batch)
	case "lost":
		gap := &EventsLost{}
		err := json.Unmarshal(f.data, gap)
		return &Events{Index: gap.To, Lost: gap}, err
	}
	return nil, nil
}

// frames reads server-sent events.
type frames struct{ r *bufio.Reader }

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 64<<10) }

// maxFrame is the maximum size of one message in bytes.
const maxFrame = 64 << 20

// next returns the next message with content. Comments, which keep the connection
// alive, are skipped.
func (f *frames) next() (*frame, error) {
	out := &frame{}
	for {
		line, err := f.line()
		if err != nil {
			return nil, err
		}
		if line == "" {
			if out.event == "" && out.data == nil {
				continue
			}
			return out, nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			out.id = value
		case "event":
			out.event = value
		case "data":
			if out.data != nil {
				out.data = append(out.data, '\n')
			}
			if len(out.data)+len(value) > maxFrame {
				return nil, errors.New("event stream: message larger than 64 MiB")
			}
			out.data = append(out.data, value...)
		}
	}
}

func (f *frames) line() (string, error) {
	var whole []byte
	for {
		part, err := f.r.ReadSlice('\n')
		whole = append(whole, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(whole) <= maxFrame:
			continue
		case errors.Is(err, io.EOF):
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		}
		return strings.TrimRight(string(whole), "\r\n"), nil
	}
}

// Collect gathers events until enough returns true or the timeout expires.
func (s EventStreams) Collect(ctx context.Context, o *StreamOptions, timeout time.Duration, enough func([]Event) bool) ([]Event, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var list []Event
	err := s.Stream(ctx, o, func(e *Events) error {
		list = append(list, e.Events...)
		if enough(list) {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return list, err
}
