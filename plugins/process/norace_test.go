//go:build !race

package process

// underRace is explained in race_test.go.
const underRace = false

// slow is how much longer everything takes.
const slow = 1
