//go:build !unix

package datadir

import (
	"errors"
	"os"
)

// Locks reports whether a Lock excludes other processes on this system.
const Locks = false

var errHeld = errors.New("held by another process")

// lockFile does nothing: Badger locks its own directories, which is enough on this system.
func lockFile(*os.File) error { return nil }

func unlockFile(*os.File) error { return nil }
