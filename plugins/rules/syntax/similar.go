package syntax

import (
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/suggest"
)

// abbreviated is the number of characters from which the beginning of a name refers to it.
const abbreviated = 8

// DidYouMean returns a hint with the known name that is closest to an unknown one, or
// otherwise if none is close.
func DidYouMean(name string, known []string, otherwise string) string {
	known = slices.Sorted(slices.Values(known))
	begun := slices.IndexFunc(known, func(n string) bool { return len(name) >= abbreviated && strings.HasPrefix(n, name) })
	if begun >= 0 {
		return suggest.Question(known[begun])
	}
	return suggest.DidYouMean(name, known, otherwise)
}
