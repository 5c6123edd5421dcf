//go:build !race

package process

// underRace is described in race_test.go.
const underRace = false

// slow is the factor by which tests take longer.
const slow = 1
