//go:build race

package meter_test

// underRace is whether the race detector watches. Nothing here has goroutines,
// and wazero is twenty times slower under it.
const underRace = true
