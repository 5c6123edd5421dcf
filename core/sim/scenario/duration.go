package scenario

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// errTooLong is a duration that is written well and longer than nanoseconds in
// an int64 can say.
var errTooLong = fmt.Errorf("longer than any duration may be: want at most %v (50 years)", maxDuration)

// goDuration matches what time.ParseDuration reads, however long.
var goDuration = regexp.MustCompile(`^[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$`)

// ParseDuration reads Go's notation: 90s, 1h30m, -2h.
func ParseDuration(text string) (Duration, error) {
	t, err := time.ParseDuration(text)
	if err != nil && goDuration.MatchString(text) {
		return 0, fmt.Errorf("%.40q: %w", text, errTooLong)
	}
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a duration: want one such as 90s or 1h30m", text)
	}
	return Duration(t), nil
}

// maxSeconds is what an int64 of nanoseconds holds.
const maxSeconds = math.MaxInt64 / 1_000_000_000

// parseSeconds reads a number of seconds, exactly, to the nearest nanosecond.
func parseSeconds(text string) (Duration, error) {
	err := fmt.Errorf("%.40s seconds are not a duration", text)
	if exceeds([]byte(text), maxSeconds) {
		return 0, fmt.Errorf("%.40s seconds: %w", text, errTooLong)
	}
	if n, ok := parseInt([]byte(text)); ok && n > -maxSeconds && n < maxSeconds {
		return Duration(n) * 1e9, nil
	}
	// Rationals of absurd exponents would take for ever.
	if len(text) > 40 || strings.ContainsAny(text, "xobn") {
		return 0, err
	}
	if f, ok := parseFloat([]byte(text)); !ok || math.Abs(f) > maxSeconds || f != 0 && math.Abs(f) < 1e-30 {
		return 0, err
	}
	r, ok := new(big.Rat).SetString(strings.ReplaceAll(text, "_", ""))
	if !ok {
		return 0, err
	}
	r.Mul(r, big.NewRat(1e9, 1))
	half := big.NewRat(int64(r.Sign()), 2)
	r.Add(r, half)
	n := new(big.Int).Quo(r.Num(), r.Denom()) // towards zero
	if !n.IsInt64() {
		return 0, err
	}
	return Duration(n.Int64()), nil
}

// String is Go's notation without trailing zero units: 1h30m, not 1h30m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// MarshalText writes a duration as Decode reads it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
