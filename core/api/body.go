package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/api/rest"
)

// decodeBody decodes the JSON body of the request into v, a pointer to a struct. It
// returns an error that lists every field that v does not have.
func (c *call) decodeBody(v any) error {
	text, err := c.readBody(c.api.cfg.Limits.Body)
	if err != nil {
		return err
	}
	unknown, err := rest.Decode(text, v, c.api.cfg.Limits.Depth)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return rest.Invalid("the body has %s: %s", countFields(len(unknown)), strings.Join(unknown, ", ")).
			WithHint("GET /v1/openapi.json lists the fields").With("Unknown", unknown)
	}
	return nil
}

// checkPathID returns an error if the body names another object than the path. The
// body may omit it.
func checkPathID(what, path, body string) error {
	if body != "" && body != path {
		return rest.Invalid("the path names %s %s, but the body names %s", what, rest.Quote(path), rest.Quote(body))
	}
	return nil
}

func countFields(n int) string {
	if n == 1 {
		return "an unknown field"
	}
	return "unknown fields"
}

// decodeJobBody decodes a body with a Nomad job. It returns a warning for every
// unknown field that has a value.
func (c *call) decodeJobBody(v any) (warnings []string, err error) {
	text, err := c.readBody(c.api.cfg.Limits.Job)
	if err != nil {
		return nil, err
	}
	unknown, err := rest.Decode(text, v, c.api.cfg.Limits.Depth)
	for _, name := range unknown {
		warnings = append(warnings, name+" is ignored")
	}
	return warnings, err
}

// readBody returns the body of the request. The read deadline of the client is
// removed afterwards, because the response may take long.
func (c *call) readBody(limit int64) ([]byte, error) {
	if kind := c.r.Header.Get("Content-Type"); kind != "" {
		if name, _, err := mime.ParseMediaType(kind); err != nil || !isJSON(name) {
			return nil, rest.Invalid("unsupported content type %s: the body must be application/json", rest.Quote(kind))
		}
	}
	if c.r.ContentLength > limit { // Content-Length is already over the limit, so do not read
		return nil, rest.BodyTooLarge(limit)
	}
	reader := c.limitedBody(limit, c.api.cfg.Limits.Read)
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, bodyError(err)
	}
	c.endBody()
	return text, nil
}

// isJSON reports whether the content type may hold JSON. It accepts the type that
// curl -d sends, because most first requests are made that way.
func isJSON(name string) bool {
	return name == "application/json" || name == "application/x-www-form-urlencoded" || name == "text/plain"
}

// limitedBody returns the body of the request, limited to limit bytes, which must
// arrive within d.
func (c *call) limitedBody(limit int64, d time.Duration) io.Reader {
	_ = c.w.Control.SetReadDeadline(time.Now().Add(d)) // fails only in tests without a connection
	return http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, limit)
}

// endBody marks the body as read, and removes its deadline.
func (c *call) endBody() {
	c.w.BodyRead = true
	_ = c.w.Control.SetReadDeadline(time.Time{})
}

func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return rest.BodyTooLarge(tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		f := rest.Invalid("timed out reading the body").WithHint("send exactly Content-Length bytes, without pauses")
		f.Status = http.StatusRequestTimeout
		return f
	}
	return rest.Invalid("the body is incomplete: %v", err)
}
