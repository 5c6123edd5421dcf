//go:build !race

package soak

// Race reports whether the race detector is enabled.
const Race = false
