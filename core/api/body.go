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

// decodeBody reads the request's JSON into v, a pointer to a struct. Fields that v
// does not have are an error that names them all.
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

// checkPathID is whether a body is about what the path names; it may leave that out.
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

// decodeJobBody is body for requests that carry a job of Nomad's: fields that say
// something and are not read are returned as warnings, by name.
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

// readBody is the request's body. The client has a deadline for it, which is taken
// away again: the answer may be long in coming.
func (c *call) readBody(limit int64) ([]byte, error) {
	if kind := c.r.Header.Get("Content-Type"); kind != "" {
		if name, _, err := mime.ParseMediaType(kind); err != nil || !isJSON(name) {
			return nil, rest.Invalid("unsupported content type %s: the body must be application/json", rest.Quote(kind))
		}
	}
	if c.r.ContentLength > limit { // it says so itself: nobody need wait for it
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

// isJSON is whether a content type may be JSON. What curl -d sends is taken
// for it: everybody's first request is made so.
func isJSON(name string) bool {
	return name == "application/json" || name == "application/x-www-form-urlencoded" || name == "text/plain"
}

// limitedBody is the request's body, of at most limit bytes, which must be there
// after d.
func (c *call) limitedBody(limit int64, d time.Duration) io.Reader {
	_ = c.w.Control.SetReadDeadline(time.Now().Add(d)) // what has no deadlines needs none
	return http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, limit)
}

// endBody says that the body was read to its end.
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
