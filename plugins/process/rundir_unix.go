//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package process

import (
	"fmt"
	"os"
	"syscall"
)

// maxSocketPath is how long the path of a socket may be, by the size of
// sockaddr_un on the systems there are.
const maxSocketPath = 103

// hasModes is whether the modes of files say who may enter.
const hasModes = true

func ownedByUs(at os.FileInfo) bool {
	stat, ok := at.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// lockDir takes the lock of a folder, which ends with the process at the
// latest. Without wait it fails where somebody holds it.
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
