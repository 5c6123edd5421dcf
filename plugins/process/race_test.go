//go:build race

package process

// underRace is whether the tests run under the race detector: with it a process
// of this binary maps far more memory than a policy may have, and comparing
// bits a thousand times over shows no race.
const underRace = true

// slow is how much longer everything takes.
const slow = 2
