//go:build unix

package compiler

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// confine bounds the resources of this process, and lets others go first.
func confine(b Budget) error {
	seconds := uint64((b.CPU + time.Second - 1) / time.Second)
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{syscall.RLIMIT_DATA, uint64(b.Memory)},
		{syscall.RLIMIT_CPU, seconds}, // kills, because Go ignores the signal at the soft limit
		{syscall.RLIMIT_FSIZE, uint64(b.Output)},
		{syscall.RLIMIT_CORE, 0},
	} {
		if err := syscall.Setrlimit(limit.resource, &syscall.Rlimit{Cur: limit.value, Max: limit.value}); err != nil {
			return fmt.Errorf("set resource limit %d to %d: %w", limit.resource, limit.value, err)
		}
	}
	// Both only improve the behavior of the machine under pressure.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return nil
}

// killed reports whether the kernel killed a process, and whether it had used its processor
// time.
func killed(exit *exec.ExitError, b Budget) (killed, outOfTime bool) {
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false, false
	}
	return true, exit.UserTime()+exit.SystemTime() >= b.CPU*9/10
}

// isTooLarge reports whether a write exceeded the size limit of files.
func isTooLarge(err error) bool { return errors.Is(err, syscall.EFBIG) }
