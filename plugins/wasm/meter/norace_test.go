//go:build !race

package meter_test

const underRace = false
