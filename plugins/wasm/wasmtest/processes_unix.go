//go:build unix

package wasmtest

import (
	"syscall"
	"testing"
	"time"
)

// ProcessTime returns the processor time of all processes that the test binary has started and
// that have ended, such as those that compile modules.
func ProcessTime(t testing.TB) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
