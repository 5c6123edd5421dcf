package scenario

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// errTooLong is returned for a well-formed duration that overflows maxDuration.
var errTooLong = fmt.Errorf("too long: expected at most %v (50 years)", maxDuration)

// goDuration matches the syntax of time.ParseDuration without its range check.
var goDuration = regexp.MustCompile(`^[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$`)

// ParseDuration parses Go's notation: 90s, 1h30m, -2h. It returns an error that wraps
// errTooLong if the duration is out of range.
func ParseDuration(text string) (Duration, error) {
	t, err := time.ParseDuration(text)
	if err != nil && goDuration.MatchString(text) {
		return 0, fmt.Errorf("%.40q: %w", text, errTooLong)
	}
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a valid duration: expected one such as 90s or 1h30m", text)
	}
	return Duration(t), nil
}

// maxSeconds is the largest number of whole seconds in an int64 of nanoseconds.
const maxSeconds = math.MaxInt64 / 1_000_000_000

// parseSeconds parses a decimal number of seconds exactly and truncates it to nanoseconds.
func parseSeconds(text string) (Duration, error) {
	err := fmt.Errorf("%.40s seconds is not a valid duration", text)
	if exceeds([]byte(text), maxSeconds) {
		return 0, fmt.Errorf("%.40s seconds: %w", text, errTooLong)
	}
	if n, ok := parseInt([]byte(text)); ok && n > -maxSeconds && n < maxSeconds {
		return Duration(n) * 1e9, nil
	}
	// Rationals with huge exponents would take unbounded time.
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
	n := new(big.Int).Quo(r.Num(), r.Denom()) // truncates towards zero
	if !n.IsInt64() {
		return 0, err
	}
	return Duration(n.Int64()), nil
}

// String returns Go's notation without trailing zero units: 1h30m, not 1h30m0s.
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

// MarshalText writes the notation that Decode reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
