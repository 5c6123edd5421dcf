package process

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// runtimeOverhead is the memory that a process may map beyond Limits.Memory: a Go runtime
// with gRPC and cgo stacks maps about 150 MiB before the policy runs, and touches a tenth
// of it.
const runtimeOverhead = 256 << 20

// setProcAttr makes the kernel kill the process when the host dies, and starts it in its
// own process group, so that its children can be killed with it. The kernel ignores the
// upper half of the group, which is 0 otherwise; the sandbox compares it with key.
func setProcAttr(cmd *exec.Cmd, key uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: int(uint64(key) << 32), Pdeathsig: syscall.SIGKILL}
}

// isMainThread reports whether the caller runs on the first thread of this process.
func isMainThread() bool { return unix.Gettid() == unix.Getpid() }

// setLimits bounds a process that was just started. A process that has already ended is
// ignored.
func setLimits(pid int, memory int64) error {
	for resource, most := range map[int]uint64{unix.RLIMIT_DATA: uint64(memory) + runtimeOverhead, unix.RLIMIT_CORE: 0} {
		var ours unix.Rlimit
		err := unix.Prlimit(pid, resource, nil, &ours)
		if err == nil {
			most = min(most, ours.Max) // a process cannot have more than its host
			err = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("%w: %w", errUnlimited, err)
		}
	}
	return nil
}

// awaitExit returns when the process has ended and before it is reaped. Until then its ID,
// and that of its group, cannot be reused.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// killGroup kills the rest of a process group.
func killGroup(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }
