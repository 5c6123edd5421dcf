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

// EventStreams is what happens; Client.Events makes one.
type EventStreams struct{ c *Client }

// StreamOptions says which events, and from where on.
type StreamOptions struct {
	Namespace string   // "*": all; "": the client's
	Topics    []string // TOPIC, or TOPIC:KEY; none: all
	Index     uint64   // the first events are those after this index; 0: from now on
}

// ErrEventsLost means that the events after the index asked for are no longer
// kept: read what you follow anew, and stream from its index.
var ErrEventsLost = errors.New("the events asked for are no longer kept")

// errStop ends a stream that the caller has had enough of.
var errStop = errors.New("stop")

// Stream calls each for the events of one index after another, until it
// returns an error, which Stream returns, or ctx ends. A connection that breaks
// is made again where it broke off, on another server if need be; nothing is
// left out or said twice.
func (s EventStreams) Stream(ctx context.Context, o *StreamOptions, each func(*Events) error) error {
	options := StreamOptions{}
	if o != nil {
		options = *o
	}
	for attempt := 0; ; attempt++ {
		before := options.Index
		err := s.follow(ctx, &options, each)
		if options.Index != before {
			attempt = 0
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var gave *callerError
		if errors.As(err, &gave) {
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

// callerError is what each returned, so that it is not taken for the stream's.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// transient is whether a stream that ended by err is made again.
func transient(err error) bool {
	e := asError(err)
	if e == nil {
		return !errors.Is(err, ErrEventsLost)
	}
	return e.Code == CodeNoLeader || e.Code == CodeUnavailable || e.Code == CodeRateLimited
}

// follow is one connection's worth of a stream. It moves o.Index on.
func (s EventStreams) follow(ctx context.Context, o *StreamOptions, each func(*Events) error) error {
	r := s.c.call(http.MethodGet, "event", "stream")
	r.header.Set("Accept", "text/event-stream")
	r.namespace(o.Namespace)
	for _, topic := range o.Topics {
		r.query.Add("topic", topic)
	}
	if o.Index > 0 {
		r.header.Set("Last-Event-ID", strconv.FormatUint(o.Index, 10))
	}
	resp, err := r.send(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := frames{r: bufio.NewReaderSize(resp.Body, 64<<10)}
	for {
		f, err := lines.next()
		if err != nil {
			return err
		}
		if f.id > 0 {
			o.Index = max(o.Index, f.id)
		}
		switch f.event {
		case "error":
			return f.failure()
		case "events":
			batch := &Events{}
			if err := json.Unmarshal(f.data, batch); err != nil {
				return &callerError{fmt.Errorf("event stream: %w", err)}
			}
			if err := each(batch); err != nil {
				return &callerError{err}
			}
		}
	}
}

// frame is one message of a stream of server-sent events.
type frame struct {
	id    uint64
	event string
	data  []byte
}

// failure is the error that a frame carries.
func (f *frame) failure() error {
	e := &Error{}
	if err := json.Unmarshal(f.data, e); err != nil {
		return fmt.Errorf("event stream: %w", err)
	}
	if e.Code == CodeNotFound {
		return fmt.Errorf("%w: %s", ErrEventsLost, e.Message)
	}
	return e
}

// frames reads messages.
type frames struct{ r *bufio.Reader }

// maxFrame bounds one message, in bytes.
const maxFrame = 64 << 20

// next returns the next message that says something. Comments keep the
// connection alive and are skipped.
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
			out.id, _ = strconv.ParseUint(value, 10, 64)
		case "event":
			out.event = value
		case "data":
			if out.data != nil {
				out.data = append(out.data, '\n')
			}
			if len(out.data)+len(value) > maxFrame {
				return nil, errors.New("event stream: a message of more than 64 MiB")
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

// Collect gathers events until enough says so or the timeout is over.
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
