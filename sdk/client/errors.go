package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// The codes of errors. They are stable; messages are not.
const (
	CodeInvalid         = "invalid"         // 400: the request is invalid; Details["Problems"] may list every problem
	CodeUnauthenticated = "unauthenticated" // 401: the token is missing or unknown
	CodeForbidden       = "forbidden"       // 403: the token's roles do not allow the request
	CodeNotFound        = "not_found"       // 404
	CodeConflict        = "conflict"        // 409: an index or a plan token is outdated
	CodeTooLarge        = "too_large"       // 413
	CodeRateLimited     = "rate_limited"    // 429: wait for Error.RetryAfter
	CodeInternal        = "internal"        // 500
	CodeUnsupported     = "unsupported"     // 501: Nomad has this operation and cede does not
	CodeNoLeader        = "no_leader"       // 503
	CodeUnavailable     = "unavailable"     // 503: the request cannot be served now, and nothing was written
	// CodeUnknownOutcome is the code of a write that was submitted and not confirmed: it may
	// or may not take effect. Sent again with the same idempotency key, it takes effect once.
	CodeUnknownOutcome = "unknown_outcome" // 504
)

// Error is the body of a server's error response.
type Error struct {
	Code    string
	Message string
	Hint    string         `json:",omitempty"` // the next step
	Details map[string]any `json:",omitempty"`

	StatusCode int           `json:"-"` // HTTP status
	RetryAfter time.Duration `json:"-"` // requested delay before the next attempt
	RequestID  string        `json:"-"` // ID of the request in the server's log
}

func (e *Error) Error() string {
	text := e.Message
	text = cmp.Or(text, e.Code)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// HasCode reports whether err is, or wraps, an Error with this code.
func HasCode(err error, code string) bool {
	e := asError(err)
	return e != nil && e.Code == code
}

// IsNotFound reports whether err means that the requested object does not exist.
func IsNotFound(err error) bool { return HasCode(err, CodeNotFound) }

// IsConflict reports whether err means that an index or a plan token is outdated.
func IsConflict(err error) bool { return HasCode(err, CodeConflict) }

// IsUnreachable reports whether err means that no server responded, or that no server
// has a leader.
func IsUnreachable(err error) bool {
	if e := asError(err); e != nil {
		return e.Code == CodeNoLeader
	}
	_, ok := errors.AsType[*UnreachableError](err)
	return ok
}

// UnreachableError is returned if no server could be reached.
type UnreachableError struct {
	Address string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no server reached at %s: %v; check that it runs and that CEDE_ADDR is right", e.Address, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// OutcomeUnknown reports whether a write that returned err may have taken effect: the
// connection broke after it was established, or the server cannot determine the outcome.
func OutcomeUnknown(err error) bool {
	if _, ok := errors.AsType[*UnreachableError](err); ok {
		return !errors.Is(err, syscall.ECONNREFUSED)
	}
	return HasCode(err, CodeUnknownOutcome) || HasCode(err, CodeUnavailable)
}

// maxErrorBody is the maximum number of bytes that are read of an error's body.
const maxErrorBody = 64 << 10

// readError returns the Error of a response that is not a success.
func readError(resp *http.Response) error {
	e := &Error{StatusCode: resp.StatusCode, RequestID: resp.Header.Get(headerRequestID), RetryAfter: retryAfter(resp)}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "application/json" && json.Unmarshal(body, e) == nil && e.Code != "" {
		return e
	}
	e.Code = codeOf(resp.StatusCode)
	e.Message = fmt.Sprintf("the server returned %s", resp.Status)
	if text := strings.TrimSpace(string(body)); text != "" && kind == "text/plain" {
		e.Message += ": " + text
	}
	if e.StatusCode == http.StatusBadRequest && strings.Contains(string(body), "HTTP request to an HTTPS server") {
		e.Hint = "use an address that begins with https://"
	}
	return e
}

// codeOf returns the code of a response without one, such as that of a proxy.
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
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return CodeUnavailable
	case http.StatusGatewayTimeout:
		return CodeUnknownOutcome
	}
	if status < http.StatusInternalServerError {
		return CodeInvalid
	}
	return CodeInternal
}

// asError returns the Error that err is or wraps, or nil.
func asError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}

// remarshal decodes the details of an error into a specific type.
func remarshal(details map[string]any, out any) error {
	text, err := json.Marshal(details)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}
