// Package suggest owns one question: which known name did somebody mean who
// wrote an unknown one? Readers of files ask it for their messages.
//
// It is a function of its arguments and may be called concurrently.
package suggest

import "strings"

// Nearest is the candidate that a mistyped name probably means; "" when none
// is close. Of several as close it is the first.
func Nearest(name string, candidates []string) string {
	if len(name) > 64 {
		return ""
	}
	short := len(name) < 3 // everything is near a short name
	best, distance := "", 1+max(1, len(name)/3)
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if short || withoutDigits(name) == withoutDigits(c) {
			continue // n2 is no mistyped n1
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(c), distance); d < distance {
			best, distance = c, d
		}
	}
	return best
}

func withoutDigits(s string) string { return strings.Trim(s, "0123456789") }

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours between two names. It may stop at limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
