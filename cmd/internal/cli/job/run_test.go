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
