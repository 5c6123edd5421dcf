package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/sdk/client"
)

// The codes of errors that the API itself returns. The server uses the same codes.
const (
	CodeInvalid         = client.CodeInvalid
	CodeUnauthenticated = client.CodeUnauthenticated
	CodeForbidden       = client.CodeForbidden
	CodeNotFound        = client.CodeNotFound
	CodeTooLarge        = client.CodeTooLarge
	CodeRateLimited     = client.CodeRateLimited
	CodeInternal        = client.CodeInternal
	CodeNoLeader        = client.CodeNoLeader
	CodeUnavailable     = client.CodeUnavailable
	CodeUnknownOutcome  = client.CodeUnknownOutcome
	CodeUnsupported     = client.CodeUnsupported
)

// Failure is an error response.
type Failure struct { //nolint:errname // the response, which is also an error
	Status              int // HTTP status; 0: derived from the code
	Code, Message, Hint string
	Details             map[string]any
	RetryAfter          time.Duration // delay before the next attempt; 0: none
}

func (f *Failure) Error() string { return f.Message }

// WithHint sets the hint and returns f.
func (f *Failure) WithHint(format string, args ...any) *Failure {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}

// With adds a detail and returns f.
func (f *Failure) With(name string, value any) *Failure {
	if f.Details == nil {
		f.Details = map[string]any{}
	}
	f.Details[name] = value
	return f
}

// Invalid returns a failure with code CodeInvalid.
func Invalid(format string, args ...any) *Failure {
	return &Failure{Code: CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// NotFound returns a failure with code CodeNotFound.
func NotFound(format string, args ...any) *Failure {
	return &Failure{Code: CodeNotFound, Message: fmt.Sprintf(format, args...)}
}

// Unavailable returns a failure with code CodeUnavailable.
func Unavailable(format string, args ...any) *Failure {
	return &Failure{Code: CodeUnavailable, Message: fmt.Sprintf(format, args...)}
}

// UnknownOutcome returns a failure with code CodeUnknownOutcome, for a write that may or may
// not take effect.
func UnknownOutcome(format string, args ...any) *Failure {
	f := &Failure{Code: CodeUnknownOutcome, Message: "the outcome of the write is unknown: " + fmt.Sprintf(format, args...)}
	return f.WithHint("send it again with the same Idempotency-Key, or check whether it took effect")
}

// Unsupported returns a failure with code CodeUnsupported.
func Unsupported(format string, args ...any) *Failure {
	return &Failure{Code: CodeUnsupported, Message: fmt.Sprintf(format, args...)}
}

// statuses maps codes to HTTP statuses.
var statuses = map[string]int{
	CodeInvalid:                    http.StatusBadRequest,
	CodeUnauthenticated:            http.StatusUnauthorized,
	CodeForbidden:                  http.StatusForbidden,
	CodeNotFound:                   http.StatusNotFound,
	client.CodeConflict:            http.StatusConflict,
	CodeTooLarge:                   http.StatusRequestEntityTooLarge,
	CodeRateLimited:                http.StatusTooManyRequests,
	CodeInternal:                   http.StatusInternalServerError,
	CodeUnsupported:                http.StatusNotImplemented,
	CodeNoLeader:                   http.StatusServiceUnavailable,
	CodeUnavailable:                http.StatusServiceUnavailable,
	CodeUnknownOutcome:             http.StatusGatewayTimeout,
	string(apierror.CodeNotLeader): http.StatusServiceUnavailable,
}

// leaderWait is the delay that a client is given while there is no leader. An
// election takes about as long.
const leaderWait = time.Second

// FailureOf returns the Failure for any error. An error that is neither a Failure nor
// an error of the server is internal: its text is logged and not sent.
func FailureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		f.fill()
		return f
	}
	f = &Failure{Code: CodeInternal, Message: "internal server error", Hint: "search the server's log for the request ID"}
	var s *apierror.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &s):
		f = &Failure{Code: string(s.Code), Message: s.Message, Hint: s.Hint, Details: s.Details}
	case errors.As(err, &tooLarge):
		f = BodyTooLarge(tooLarge.Limit)
	case errors.Is(err, context.DeadlineExceeded):
		f = UnknownOutcome("the request timed out")
	case errors.Is(err, context.Canceled):
		f = Unavailable("the request was cancelled, or the server is stopping")
	}
	f.fill()
	return f
}

func (f *Failure) fill() {
	if f.Code == string(apierror.CodeNotLeader) {
		f.Code = CodeNoLeader // the API does not expose the roles of servers
		f.Hint = cmp.Or(f.Hint, "this server cannot forward the request; use the leader, or retry")
	}
	if f.Status == 0 {
		f.Status = statuses[f.Code]
	}
	if f.Status == 0 {
		f.Status, f.Code = http.StatusInternalServerError, CodeInternal
	}
	if f.RetryAfter == 0 && f.Status == http.StatusServiceUnavailable {
		f.RetryAfter = leaderWait
	}
}

// BodyTooLarge returns a failure for a request body above a limit in bytes.
func BodyTooLarge(limit int64) *Failure {
	return (&Failure{Code: CodeTooLarge, Message: fmt.Sprintf("the body is larger than %d bytes", limit)}).
		With("Limit", limit).WithHint("send it in parts, or raise limits.body or limits.job in the server's configuration")
}

// Write sends the failure as the response.
func (f *Failure) Write(w http.ResponseWriter) {
	if f.RetryAfter > 0 {
		seconds := int64((f.RetryAfter + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="cede"`)
	}
	WriteJSON(w, f.Status, &client.Error{Code: f.Code, Message: f.Message, Hint: f.Hint, Details: f.Details})
}

// Quote returns text of a client in quotes, truncated to 200 bytes.
func Quote(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}

// WriteJSON sends a value. It panics if the value cannot be encoded, which is a defect.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("api: response cannot be encoded: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // an error means that the client is gone
}
