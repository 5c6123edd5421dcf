package process

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// runtimeOverhead is what a process may map beyond Limits.Memory: a Go runtime with
// gRPC and cgo's stacks maps some 150 MiB before a policy says a word, of which
// it touches a tenth.
const runtimeOverhead = 256 << 20

// setProcAttr says how a process is to be started: it is killed when the host dies,
// and in a group of its own, so that what it starts can be killed with it.
func setProcAttr(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// setLimits bounds a process that has just been started. One that has ended already
// needs no bounds.
func setLimits(pid int, memory int64) error {
	for resource, most := range map[int]uint64{unix.RLIMIT_DATA: uint64(memory) + runtimeOverhead, unix.RLIMIT_CORE: 0} {
		var ours unix.Rlimit
		err := unix.Prlimit(pid, resource, nil, &ours)
		if err == nil {
			most = min(most, ours.Max) // more than its host it cannot get
			err = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("%w: %w", errUnlimited, err)
		}
	}
	return nil
}

// awaitExit returns when the process has ended and before it is reaped: until
// then its number, which is that of its group, is nobody else's.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// killGroup kills all that is left of a process and what it started.
func killGroup(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }
