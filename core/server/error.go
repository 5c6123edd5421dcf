package server

import (
	"context"
	"errors"
	"fmt"
)

// Code is the kind of an error, the same on every way in.
type Code string

// The codes, with the status that the API gives them.
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
	CodeNotLeader       Code = "not_leader"      // 503; the API forwards, so people do not see it
)

// Error is what every call of the server fails with.
type Error struct {
	Code    Code
	Message string
	Hint    string         // what to do about it; may be empty
	Details map[string]any // for programs; may be nil
	Err     error          // what lies beneath; may be nil
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// Unwrap is what lies beneath.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf is the code of an error: internal when it is none of the server's.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

func fail(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) with(details map[string]any) *Error {
	e.Details = details
	return e
}

// interrupted is the error of a call whose context ended.
func interrupted(err error) *Error {
	e := fail(CodeUnavailable, "the request ended before it was answered: %v", err)
	if errors.Is(err, context.DeadlineExceeded) {
		e.Hint = "the server is busy, or has lost its peers: try again"
	}
	e.Err = err
	return e
}
