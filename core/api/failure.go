package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/sdk/client"
)

// The codes that the API itself gives; the server's are the same words.
const (
	codeInvalid         = client.CodeInvalid
	codeUnauthenticated = client.CodeUnauthenticated
	codeForbidden       = client.CodeForbidden
	codeNotFound        = client.CodeNotFound
	codeTooLarge        = client.CodeTooLarge
	codeRateLimited     = client.CodeRateLimited
	codeInternal        = client.CodeInternal
	codeNoLeader        = client.CodeNoLeader
	codeUnavailable     = client.CodeUnavailable
)

// failure is what is answered instead of a result.
type failure struct {
	status              int // 0: that of the code
	code, message, help string
	details             map[string]any
	wait                time.Duration // Retry-After
}

func (f *failure) Error() string { return f.message }

func (f *failure) hint(format string, args ...any) *failure {
	f.help = fmt.Sprintf(format, args...)
	return f
}

func (f *failure) with(name string, value any) *failure {
	if f.details == nil {
		f.details = map[string]any{}
	}
	f.details[name] = value
	return f
}

func invalid(format string, args ...any) *failure {
	return &failure{code: codeInvalid, message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *failure {
	return &failure{code: codeNotFound, message: fmt.Sprintf(format, args...)}
}

func unavailable(format string, args ...any) *failure {
	return &failure{code: codeUnavailable, message: fmt.Sprintf(format, args...)}
}

// statuses are the codes' status.
var statuses = map[string]int{
	codeInvalid:                    http.StatusBadRequest,
	codeUnauthenticated:            http.StatusUnauthorized,
	codeForbidden:                  http.StatusForbidden,
	codeNotFound:                   http.StatusNotFound,
	client.CodeConflict:            http.StatusConflict,
	codeTooLarge:                   http.StatusRequestEntityTooLarge,
	codeRateLimited:                http.StatusTooManyRequests,
	codeInternal:                   http.StatusInternalServerError,
	codeNoLeader:                   http.StatusServiceUnavailable,
	codeUnavailable:                http.StatusServiceUnavailable,
	string(apierror.CodeNotLeader): http.StatusServiceUnavailable,
}

// leaderWait is how long a client is asked to wait while there is no leader: an
// election takes about as long.
const leaderWait = time.Second

// failureOf makes a failure of any error. What the API and the server did not
// say themselves is an internal error, whose words go to the log alone.
func failureOf(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		f.fill()
		return f
	}
	f = &failure{code: codeInternal, message: "the server failed to answer", help: "its log says more, under the request id"}
	var s *apierror.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &s):
		f = &failure{code: string(s.Code), message: s.Message, help: s.Hint, details: s.Details}
	case errors.As(err, &tooLarge):
		f = bodyTooLarge(tooLarge.Limit)
	case errors.Is(err, context.DeadlineExceeded):
		f = unavailable("the request took too long").hint("it may still be carried out; send writes again with the same Idempotency-Key")
	case errors.Is(err, context.Canceled):
		f = unavailable("the request was given up, or the server is stopping")
	}
	f.fill()
	return f
}

func (f *failure) fill() {
	if f.code == string(apierror.CodeNotLeader) {
		f.code = codeNoLeader // people are not to see who is who among the servers
		if f.help == "" {
			f.help = "this server cannot pass the request on; ask the leader, or try again"
		}
	}
	if f.status == 0 {
		f.status = statuses[f.code]
	}
	if f.status == 0 {
		f.status, f.code = http.StatusInternalServerError, codeInternal
	}
	if f.wait == 0 && f.status == http.StatusServiceUnavailable {
		f.wait = leaderWait
	}
}

func bodyTooLarge(limit int64) *failure {
	return (&failure{code: codeTooLarge, message: fmt.Sprintf("the body is larger than the %d bytes that are taken here", limit)}).
		with("Limit", limit).hint("send it in parts, or ask whoever runs the server to raise limits.body or limits.job")
}

// write sends the failure.
func (f *failure) write(w http.ResponseWriter) {
	if f.wait > 0 {
		seconds := int64((f.wait + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="cede"`)
	}
	writeJSON(w, f.status, &client.Error{Code: f.code, Message: f.message, Hint: f.help, Details: f.details})
}

// quote shows what a stranger sent: in quotes, and not all of it.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}
