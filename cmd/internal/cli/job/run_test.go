package job

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// If a registration may have taken effect, the hint contains the key that repeats it
// safely.
func TestJobRun_ReportsKeyIfOutcomeIsUnknown(t *testing.T) {
	r := &jobRun{key: "k-1"}
	for _, test := range []struct {
		err     error
		unknown bool
	}{
		{&client.UnreachableError{Address: "http://x", Err: io.ErrUnexpectedEOF}, true},
		{&client.Error{StatusCode: 503, Code: client.CodeUnavailable, Message: "it may have taken effect"}, true},
		{&client.UnreachableError{Address: "http://x", Err: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}}, false},
		{&client.Error{StatusCode: 400, Code: client.CodeInvalid, Message: "bad"}, false},
	} {
		e, ok := errors.AsType[*cmdutil.Error](r.unknownOutcome(test.err))
		if named := ok && strings.Contains(e.Hint, "--idempotency-key k-1"); named != test.unknown {
			t.Errorf("%v: hint with key: %v", test.err, named)
		}
	}
}

// A node that lacks a driver does not become feasible when capacity becomes free.
func TestPlacedWhen(t *testing.T) {
	t.Parallel()
	lacks := &client.AllocationMetric{ConstraintFiltered: map[string]int{"lacks driver exec": 2}}
	full := &client.AllocationMetric{ConstraintFiltered: map[string]int{"lacks driver exec": 1}, DimensionExhausted: map[string]int{"cpu": 1}}
	for _, x := range []struct {
		failed map[string]*client.AllocationMetric
		want   string
	}{
		{map[string]*client.AllocationMetric{"a": lacks}, "a node joins that meets its requirements"},
		{map[string]*client.AllocationMetric{"a": lacks, "b": full}, "capacity becomes free"},
		{nil, "capacity becomes free"},
	} {
		if got := placedWhen(x.failed); got != x.want {
			t.Errorf("placed when %s, want %s", got, x.want)
		}
	}
}
