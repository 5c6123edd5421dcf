package jobspec

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
)

// maxDuration is the longest accepted duration. The bound keeps sums of times within
// an int64 of nanoseconds.
const maxDuration = fieldcheck.MaxDuration

// parseNumber parses a finite number. It returns false if text is not one.
func parseNumber(text string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// parseInteger parses an integer, including the forms 1e3 and 5.0. It returns false
// for a leading zero, because YAML 1.1 parsers read 010 as 8.
func parseInteger(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		digits := strings.TrimLeft(text, "+-")
		return n, digits == "0" || digits[0] != '0'
	}
	f, ok := parseNumber(text)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// parseDuration parses a duration in Go's notation, or a number of seconds. The text
// of the error is a remedy.
func parseDuration(v *value) (time.Duration, error) {
	const want = "write 90s, 1h30m, 250ms, or a number of seconds"
	var d time.Duration
	switch v.kind {
	case kindText:
		var err error
		if d, err = time.ParseDuration(v.text); err != nil {
			return 0, errors.New(want)
		}
	case kindNumber:
		f, ok := parseNumber(v.text)
		if !ok {
			return 0, errors.New(want)
		}
		if math.Abs(f) > maxDuration.Seconds() {
			return 0, fmt.Errorf("write at most %v (50 years)", maxDuration)
		}
		if n, ok := parseInteger(v.text); ok {
			return time.Duration(n) * time.Second, nil
		}
		d = time.Duration(math.Round(f * 1e9))
	default:
		return 0, errors.New(want)
	}
	return d, nil
}

// parseAmount parses an amount of a resource: an integer in the resource's unit, or a
// Kubernetes quantity. The text of the error is a remedy.
func parseAmount(resource string, v *value) (int64, error) {
	want := fmt.Errorf("write an integer in %s, or a quantity such as %s", model.Unit(resource), example(resource))
	switch v.kind {
	case kindNumber:
		n, ok := parseInteger(v.text)
		if !ok {
			return 0, want
		}
		return n, nil // the bounds are checked by checkAmount
	case kindText:
		n, err := model.ParseQuantity(resource, v.text)
		if errors.Is(err, model.ErrInvalidQuantity) {
			return 0, want
		}
		return n, err
	}
	return 0, want
}

// example returns a plausible quantity of the resource for messages.
func example(resource string) string {
	switch resource {
	case "cpu":
		return `"500m"`
	case "memory", "disk":
		return `"2Gi"`
	case "network":
		return `"1G"`
	}
	return `"2"`
}
