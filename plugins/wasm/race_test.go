//go:build race

package wasm_test

// underRace reports whether the race detector is active. The engine is twenty times slower
// under it, so tests without goroutines are skipped.
const underRace = true
