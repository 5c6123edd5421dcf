//go:build race

package process

// underRace reports whether the race detector is active: a process of this binary then maps
// far more memory than any limit, and bit-by-bit comparisons find no races.
const underRace = true

// slow is the factor by which tests take longer.
const slow = 2
