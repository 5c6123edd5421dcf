//go:build !unix

package datadir

import (
	"errors"
	"os"
)

var errHeld = errors.New("held by another process")

// lockFile does nothing: Badger locks its own directories, which is enough on this system.
func lockFile(*os.File) error { return nil }
