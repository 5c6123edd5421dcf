//go:build !linux

package disk

import "os"

// NextData knows of no holes here.
func NextData(_ *os.File, at, _ int64) int64 { return at }
