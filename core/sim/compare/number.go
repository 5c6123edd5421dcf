package compare

import (
	"strconv"
	"strings"
)

// Number formats a value for tables: integers exactly, others with four significant
// digits, large ones with a suffix (12.35M).
func Number(x float64) string {
	abs, sign := x, ""
	if x < 0 {
		abs, sign = -x, "-"
	}
	scale, letter := 1.0, ""
	for _, s := range [...]struct {
		from   float64
		letter string
	}{{1e5, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}} {
		if abs >= s.from {
			scale, letter = s.from, s.letter
		}
	}
	if letter == "k" {
		scale = 1e3
	}
	v := abs / scale
	if scale == 1 && v == float64(int64(v)) {
		return sign + strconv.FormatInt(int64(v), 10)
	}
	decimals := 3
	for limit := 10.0; v >= limit && decimals > 0; limit *= 10 {
		decimals--
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "0" && abs > 0 {
		text = "<0.001"
	}
	return sign + text + letter
}
