// Package soak selects how many cases a test tries. Tests of the whole tree share it, so
// that two variables of the environment apply everywhere:
//
//   - CEDE_SOAK=1 selects full counts, which take hours.
//   - CEDE_QUICK=1 selects an eighth of the normal counts. The race detector implies it.
//
// CEDE_SOAK takes precedence. The package imports the standard library only, because the
// SDK is copied into other projects.
package soak

import "os"

// quickShare is the divisor of normal counts if reduced counts are selected.
const quickShare = 8

// Full reports whether full counts are selected.
func Full() bool { return os.Getenv("CEDE_SOAK") != "" }

// Quick reports whether reduced counts are selected.
func Quick() bool { return !Full() && (Race || os.Getenv("CEDE_QUICK") != "") }

// Count returns full if full counts are selected. It returns a share of normal, but at
// least 1, if reduced counts are selected, and normal otherwise.
func Count(normal, full int) int {
	switch {
	case Full():
		return full
	case Quick():
		return max(1, normal/quickShare)
	}
	return normal
}

// Scale returns Count(n, 50*n).
func Scale(n int) int { return Count(n, 50*n) }
