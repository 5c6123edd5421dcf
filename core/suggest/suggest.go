package suggest

import "strings"

// Nearest returns the candidate closest to a mistyped name, or "" if none is close. If
// several are equally close, it returns the first.
func Nearest(name string, candidates []string) string {
	if len(name) > 64 {
		return ""
	}
	short := len(name) < 3 // every name is close to a short one
	best, distance := "", 1+max(1, len(name)/3)
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if short || withoutDigits(name) == withoutDigits(c) {
			continue // n2 is not a correction of n1
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(c), distance); d < distance {
			best, distance = c, d
		}
	}
	return best
}

func withoutDigits(s string) string { return strings.Trim(s, "0123456789") }

// editDistance returns the number of insertions, deletions, replacements and swaps of
// adjacent characters between two names. If that is at least limit, it may return limit
// early.
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
