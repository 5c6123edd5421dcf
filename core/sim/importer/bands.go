package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bands resolves priorities by the trace's own words.
type bands struct {
	known     map[string]int32 // defaults
	overrides map[string]int32 // Options.Bands
	unknown   int32            // for a word that neither has
	seen      map[string]bool
}

func newBands(known, chosen map[string]int32) *bands {
	return &bands{known: known, overrides: chosen, unknown: 50, seen: make(map[string]bool)}
}

// priority returns the priority for the first of the words that somebody chose, else
// for the last one that has a default.
func (b *bands) priority(words ...string) (priority int32, known bool) {
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

// unused finds a chosen word that no work has: most likely a slip of the pen.
func (b *bands) unused() error {
	for _, w := range slices.Sorted(maps.Keys(b.overrides)) {
		if _, ok := b.known[w]; !ok && !b.seen[w] {
			return fmt.Errorf("band %s=%d: no work in this trace is called %q; there is %s",
				w, b.overrides[w], w, strings.Join(slices.Sorted(maps.Keys(b.seen)), ", "))
		}
	}
	return nil
}
