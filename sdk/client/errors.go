package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// The codes of errors. They are stable; messages are not.
const (
	CodeInvalid         = "invalid"         // 400: the request is wrong; Details["Problems"] may list everything
	CodeUnauthenticated = "unauthenticated" // 401: no token, or one that is not known
	CodeForbidden       = "forbidden"       // 403: the token's roles do not cover it
	CodeNotFound        = "not_found"       // 404
	CodeConflict        = "conflict"        // 409: an index or a plan token no longer holds
	CodeTooLarge        = "too_large"       // 413
	CodeRateLimited     = "rate_limited"    // 429: wait for Error.RetryAfter
	CodeInternal        = "internal"        // 500
	CodeNoLeader        = "no_leader"       // 503
	CodeUnavailable     = "unavailable"     // 503: it cannot be served now, or its outcome is unknown
)

// Error is what a server answers instead of a result.
type Error struct {
	Code    string
	Message string
	Hint    string         `json:",omitempty"` // the next step
	Details map[string]any `json:",omitempty"`

	StatusCode int           `json:"-"` // of HTTP
	RetryAfter time.Duration `json:"-"` // how long the server asks to wait
	RequestID  string        `json:"-"` // under which the server's log has it
}

func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = e.Code
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// HasCode is whether err is, or wraps, an Error with this code.
func HasCode(err error, code string) bool {
	e := asError(err)
	return e != nil && e.Code == code
}

// IsNotFound is whether err says that what was asked for does not exist.
func IsNotFound(err error) bool { return HasCode(err, CodeNotFound) }

// IsConflict is whether err says that an index or a plan token no longer holds.
func IsConflict(err error) bool { return HasCode(err, CodeConflict) }

// IsUnreachable is whether err says that no server answered, or none that
// knows a leader.
func IsUnreachable(err error) bool {
	if e := asError(err); e != nil {
		return e.Code == CodeNoLeader
	}
	_, ok := errors.AsType[*UnreachableError](err)
	return ok
}

// UnreachableError means that no server could be asked.
type UnreachableError struct {
	Address string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no server reached at %s: %v; is it running, and is CEDE_ADDR right?", e.Address, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// maxErrorBody is how much of an error's body is read.
const maxErrorBody = 64 << 10

// readError makes an Error of a response that is none of success.
func readError(resp *http.Response) error {
	e := &Error{StatusCode: resp.StatusCode, RequestID: resp.Header.Get(headerRequestID), RetryAfter: retryAfter(resp)}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "application/json" && json.Unmarshal(body, e) == nil && e.Code != "" {
		return e
	}
	e.Code = codeOf(resp.StatusCode)
	e.Message = fmt.Sprintf("the server answered %s", resp.Status)
	if text := strings.TrimSpace(string(body)); text != "" && kind == "text/plain" {
		e.Message += ": " + text
	}
	if e.StatusCode == http.StatusBadRequest && strings.Contains(string(body), "HTTP request to an HTTPS server") {
		e.Hint = "the address needs https://"
	}
	return e
}

// codeOf is the code of an answer that carries none: a proxy's, perhaps.
func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return CodeUnauthenticated
	case http.StatusForbidden:
		return CodeForbidden
	case http.StatusNotFound:
		return CodeNotFound
	case http.StatusConflict:
		return CodeConflict
	case http.StatusRequestEntityTooLarge:
		return CodeTooLarge
	case http.StatusTooManyRequests:
		return CodeRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return CodeUnavailable
	}
	if status < http.StatusInternalServerError {
		return CodeInvalid
	}
	return CodeInternal
}

// asError is the Error that err is or wraps; nil: none.
func asError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}

// remarshal reads the details of an error as something more definite.
func remarshal(details map[string]any, out any) error {
	text, err := json.Marshal(details)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}
