//go:build !unix

package disk

import (
	"errors"
	"math"
	"os"
)

// freeBytes is unknown here, and taken as enough.
func freeBytes(string) (uint64, error) { return math.MaxUint64, nil }

func AllocatedBytes(info os.FileInfo) int64 { return info.Size() }
