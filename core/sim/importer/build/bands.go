package build

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bands maps the priority names of a trace to priorities.
type Bands struct {
	known     map[string]int32 // defaults
	overrides map[string]int32 // Options.Bands
	unknown   int32            // priority of a name in neither map
	seen      map[string]bool
}

// NewBands returns the bands of a trace with the chosen priorities.
func NewBands(known, chosen map[string]int32) *Bands {
	return &Bands{known: known, overrides: chosen, unknown: 50, seen: make(map[string]bool)}
}

// Priority returns the priority of the first word with an override, else of the last
// word with a default. It returns false if there is neither.
func (b *Bands) Priority(words ...string) (priority int32, known bool) {
	for _, w := range words {
		b.seen[w] = true
	}
	for _, w := range words {
		if p, ok := b.overrides[w]; ok {
			return p, true
		}
	}
	for _, w := range slices.Backward(words) {
		if p, ok := b.known[w]; ok {
			return p, true
		}
	}
	return b.unknown, false
}

// See records that a job has a band without a priority of its own.
func (b *Bands) See(word string) { b.seen[word] = true }

// Unused returns an error if an override names a band that no job has, most likely by a
// typing error.
func (b *Bands) Unused() error {
	for _, w := range slices.Sorted(maps.Keys(b.overrides)) {
		if _, ok := b.known[w]; !ok && !b.seen[w] {
			return fmt.Errorf("band %s=%d: no job in this trace has band %q; bands: %s",
				w, b.overrides[w], w, strings.Join(slices.Sorted(maps.Keys(b.seen)), ", "))
		}
	}
	return nil
}
