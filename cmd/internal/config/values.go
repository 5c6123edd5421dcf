package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Size is a number of bytes. Its format is 4096, 64KiB, 10MiB or 2GiB.
type Size int64

var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

// ParseSize parses the format that String returns.
func ParseSize(text string) (Size, error) {
	number, factor := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(n), u.bytes
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("invalid size %q: expected bytes, or a number with KiB, MiB, GiB or TiB", text)
	}
	return Size(n * factor), nil
}

func (s Size) String() string {
	for _, u := range slices.Backward(units) {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Secret is a value that is never printed.
type Secret string

const masked = "(secret)"

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString implements fmt.GoStringer; it masks the secret.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements encoding.TextMarshaler; it masks the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
