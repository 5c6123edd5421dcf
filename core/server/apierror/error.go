// Package apierror defines the error that every call of a server fails with: a
// code that is the same for every client, a message, and a hint that states the
// next step.
//
// It translates nothing into HTTP statuses: core/api does. Errors are values
// and must not be changed after they are returned.
package apierror

import (
	"context"
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/replication"
)

// A Code classifies an error. Codes are stable: clients compare them.
type Code string

// The codes, each with the HTTP status that core/api returns for it.
const (
	CodeInvalid         Code = "invalid"         // 400
	CodeUnauthenticated Code = "unauthenticated" // 401
	CodeForbidden       Code = "forbidden"       // 403
	CodeNotFound        Code = "not_found"       // 404
	CodeConflict        Code = "conflict"        // 409
	CodeTooLarge        Code = "too_large"       // 413
	CodeRateLimited     Code = "rate_limited"    // 429
	CodeInternal        Code = "internal"        // 500
	CodeNoLeader        Code = "no_leader"       // 503
	CodeUnavailable     Code = "unavailable"     // 503
	CodeUnknownOutcome  Code = "unknown_outcome" // 504: a write that may or may not take effect
	CodeNotLeader       Code = "not_leader"      // 503; core/api forwards the request instead, so users do not see it
)

// An Error is an error of a call of the server.
type Error struct {
	Code    Code
	Message string
	Hint    string         // the next step for the user; may be empty
	Details map[string]any // for programs; may be nil
	Err     error          // the cause; may be nil
}

// New returns an error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint sets the formatted hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithDetails sets the details and returns e.
func (e *Error) WithDetails(details map[string]any) *Error {
	e.Details = details
	return e
}

// WithCause sets the cause and returns e.
func (e *Error) WithCause(err error) *Error {
	e.Err = err
	return e
}

// Error returns the message, followed by the hint in parentheses if there is one.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of err, or CodeInternal if err wraps no *Error.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// Interrupted returns the error of a call if its context ended with err before anything was
// written.
func Interrupted(err error) *Error {
	e := New(CodeUnavailable, "request ended before it was answered: %v", err).WithCause(err)
	if errors.Is(err, context.DeadlineExceeded) {
		e.Hint = "nothing was written; the server is busy, or has lost its peers: try again"
	}
	return e
}

// UnknownOutcome returns the error of a write that was submitted and not answered: it may
// have taken effect, may take effect later, or never.
func UnknownOutcome(err error) *Error {
	return New(CodeUnknownOutcome, "the outcome of the write is unknown: %v", err).WithCause(err).
		WithHint("send it again with the same Idempotency-Key, or check whether it took effect")
}

// Refused returns the error of a command that was committed and had no effect.
func Refused(r *replication.Refusal) *Error {
	e := New(CodeConflict, "%s", r.Message).WithCause(r)
	switch r.Code {
	case replication.CodeNotFound:
		e.Code = CodeNotFound
	case replication.CodeInvalid:
		e.Code = CodeInvalid
	case replication.CodeTooLarge:
		e.Code = CodeTooLarge
	}
	return e
}
