package syntax

import (
	"slices"
	"strings"
)

// abbreviated is the number of characters from which the beginning of a name refers to it.
const abbreviated = 8

// DidYouMean returns a hint with the known name that is closest to an unknown one, or
// otherwise if none is close.
func DidYouMean(name string, known []string, otherwise string) string {
	best, least := "", len(name)/2+1
	for _, n := range slices.Sorted(slices.Values(known)) {
		d := distance(strings.ToLower(name), strings.ToLower(n))
		if strings.HasPrefix(n, name) && len(name) >= abbreviated {
			d = 0
		}
		if d < least {
			best, least = n, d
		}
	}
	if best == "" {
		return otherwise
	}
	return "did you mean " + best + "?"
}

// distance returns the number of characters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
