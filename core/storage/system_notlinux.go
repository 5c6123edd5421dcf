//go:build !linux

package storage

import "os"

// nextData knows of no holes here.
func nextData(_ *os.File, at, _ int64) int64 { return at }
