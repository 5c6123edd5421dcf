//go:build !unix

package storage

import (
	"errors"
	"math"
	"os"
)

var errHeld = errors.New("held by another process")

// lockFile leaves locking to Badger, which locks its own directories.
func lockFile(*os.File) error { return nil }

// freeBytes is unknown here, and taken as enough.
func freeBytes(string) (uint64, error) { return math.MaxUint64, nil }

func blocks(info os.FileInfo) int64 { return info.Size() }
