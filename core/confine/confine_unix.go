//go:build unix

package confine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// Apply bounds the resources of this process, and lets others go first.
func Apply(l Limits) error {
	seconds := uint64((l.CPU + time.Second - 1) / time.Second)
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{syscall.RLIMIT_DATA, uint64(l.Memory)},
		{syscall.RLIMIT_CPU, seconds}, // kills, because Go ignores the signal at the soft limit
		{syscall.RLIMIT_FSIZE, uint64(l.File)},
		{syscall.RLIMIT_CORE, 0},
	} {
		var inherited syscall.Rlimit
		if err := syscall.Getrlimit(limit.resource, &inherited); err != nil {
			return fmt.Errorf("read resource limit %d: %w", limit.resource, err)
		}
		value := min(limit.value, inherited.Max) // a process cannot raise a limit of its user
		if err := syscall.Setrlimit(limit.resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("set resource limit %d to %d: %w", limit.resource, value, err)
		}
	}
	// These only improve the behavior of the machine under pressure.
	lowerPriority(l.Nice)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return nil
}

// lowerPriority lowers the priority of all threads. On Linux a priority belongs to a thread,
// and new threads inherit that of their creator.
func lowerPriority(nice int) {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice)
	threads, _ := os.ReadDir("/proc/self/task") // other systems have one priority per process
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, nice)
		}
	}
}

// Killed reports whether the kernel killed a process, and whether it had used its processor
// time.
func Killed(exit *exec.ExitError, cpu time.Duration) (killed, outOfTime bool) {
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false, false
	}
	return true, exit.UserTime()+exit.SystemTime() >= cpu*9/10
}

// IsTooLarge reports whether a write exceeded the size limit of files.
func IsTooLarge(err error) bool { return errors.Is(err, syscall.EFBIG) }
