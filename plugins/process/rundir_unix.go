//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package process

import (
	"fmt"
	"os"
	"syscall"
)

// maxSocketPath is the maximum length of a socket path, given by the smallest sockaddr_un
// of the supported systems.
const maxSocketPath = 103

// hasModes reports whether file modes control access.
const hasModes = true

func ownedByUs(at os.FileInfo) bool {
	stat, ok := at.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// lockDir locks a directory until the process ends or the file is closed. If wait is false
// and another process holds the lock, it returns an error.
func lockDir(path string, wait bool) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR { //nolint:errorlint // a bare errno
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

func unlock(f *os.File) { _ = f.Close() }
