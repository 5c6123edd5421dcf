//go:build !unix

package confine

import (
	"os/exec"
	"time"
)

// Apply does nothing: only the time of the process is bounded on this system.
func Apply(Limits) error { return nil }

// Killed returns false.
func Killed(*exec.ExitError, time.Duration) (killed, outOfTime bool) { return false, false }

// IsTooLarge returns false.
func IsTooLarge(error) bool { return false }
