//go:build race

package meter_test

// underRace reports whether the race detector is active. There are no goroutines here, and
// wazero is twenty times slower under it.
const underRace = true
