//go:build race

package wasm_test

// underRace is whether the race detector watches. The engine is twenty times
// slower under it, so what has no goroutines of its own is left out then.
const underRace = true
