//go:build !unix

package datadir

import (
	"errors"
	"os"
)

var errHeld = errors.New("held by another process")

// lockFile leaves locking to Badger, which locks its own directories.
func lockFile(*os.File) error { return nil }
