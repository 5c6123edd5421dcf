package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/api/rest"
)

// decodeBody decodes the JSON body of the request into v, a pointer to a struct. It
// returns an error that lists every field that v does not have.
func (c *call) decodeBody(v any) error { return c.decodeBodyUpTo(v, c.api.cfg.Limits.Body) }

// decodeBodyUpTo is decodeBody for a body of at most limit bytes.
func (c *call) decodeBodyUpTo(v any, limit int64) error {
	text, err := c.readBody(limit)
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

// withBody returns a handler that decodes the JSON body of the request first.
func withBody[T any](handle func(a *API, c *call, req *T) (any, error)) handler {
	return func(a *API, c *call) (any, error) {
		req := new(T)
		if err := c.decodeBody(req); err != nil {
			return nil, err
		}
		return handle(a, c, req)
	}
}

// withTokenBody is withBody for a body with a plan token, which can be as large as a job.
func withTokenBody[T any](handle func(a *API, c *call, req *T) (any, error)) handler {
	return func(a *API, c *call) (any, error) {
		req := new(T)
		if err := c.decodeBodyUpTo(req, a.cfg.Limits.Job); err != nil {
			return nil, err
		}
		return handle(a, c, req)
	}
}

// checkPathID returns an error if the body names another object than the path. The
// body may omit it.
func checkPathID(what, path, body string) error {
	if body != "" && body != path {
		return rest.Invalid("the path names %s %s, but the body names %s", what, rest.Quote(path), rest.Quote(body)).WithHint("omit the name in the body, or use that of the path")
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

// jsonOnly lists the content types of a route unless it declares others.
var jsonOnly = []string{"application/json"}

// checkContentType returns an error if the body of a write has a content type that the
// route does not accept. Browsers send text/plain and forms to other origins without
// a preflight request, so no route accepts these, except the form of policy_load.
// A missing type is accepted unless a browser sent the request, because Nomad's
// clients and curl -T send none.
func (c *call) checkContentType() error {
	if c.r.ContentLength == 0 || c.r.Method == http.MethodGet || c.r.Method == http.MethodHead || c.route.pattern == unknown.pattern {
		return nil
	}
	accepted := c.route.accepts
	if accepted == nil {
		accepted = jsonOnly
	}
	kind := c.r.Header.Get("Content-Type")
	if kind == "" && !rest.FromBrowser(c.r) {
		return nil
	}
	if name, _, err := mime.ParseMediaType(kind); err == nil && slices.Contains(accepted, name) {
		return nil
	}
	list := strings.Join(accepted, " or ")
	f := rest.Invalid("unsupported content type %s: it must be %s", rest.Quote(kind), list).WithHint("send the header Content-Type: %s", accepted[0])
	f.Status = http.StatusUnsupportedMediaType
	return f
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
