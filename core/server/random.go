package server

import (
	"math/rand/v2"
	"runtime"

	"github.com/google/uuid"
)

func newID() string { return uuid.NewString() }

// randomUpTo is in [0, n); 0 where n is not positive.
func randomUpTo(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return rand.Int64N(n)
}

func defaultWorkers() int { return max(1, runtime.GOMAXPROCS(0)/2) }
