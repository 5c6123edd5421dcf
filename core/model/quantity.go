package model

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// MaxAmount is the largest amount of one resource that a node may have or a group
// may request. It is far below the maximum of int64, so that sums over tens of
// thousands of nodes cannot overflow.
const MaxAmount = 1 << 48

var (
	// ErrInvalidQuantity means that a text is not a valid Kubernetes quantity.
	ErrInvalidQuantity = errors.New("not a quantity")
	// ErrNegativeQuantity means that an amount is below zero.
	ErrNegativeQuantity = errors.New("negative")
	// ErrQuantityTooLarge means that an amount is above MaxAmount.
	ErrQuantityTooLarge = errors.New("too large")
)

// Unit returns the unit of integer amounts of a resource.
func Unit(resource string) string {
	switch resource {
	case "cpu":
		return "millicores"
	case "memory", "disk":
		return "MiB"
	case "network":
		return "Mbit/s"
	}
	return "units"
}

// UnitOf returns the unit of a number of a resource, in the singular if the number is 1.
func UnitOf(n int64, resource string) string {
	unit := Unit(resource)
	if n == 1 {
		switch unit {
		case "millicores":
			return "millicore"
		case "units":
			return "unit"
		}
	}
	return unit
}

// ParseQuantity converts a Kubernetes quantity to the unit of a resource, for
// requests and reservations. If an amount is not a whole number of units, it is
// rounded up, as in Kubernetes. It returns ErrInvalidQuantity, ErrNegativeQuantity
// or ErrQuantityTooLarge.
//
// A number without suffix counts the base unit of Kubernetes: cores of cpu ("2" is
// 2000 millicores), bytes of memory and disk ("1G" is 954 MiB), bits per second of
// network ("1G" is 1000 Mbit/s), and units of other resources.
func ParseQuantity(resource, text string) (int64, error) {
	return parseQuantity(resource, text, true)
}

// ParseCapacity is ParseQuantity for the capacity of a node: it rounds down, so
// that no more is offered than exists.
func ParseCapacity(resource, text string) (int64, error) {
	return parseQuantity(resource, text, false)
}

func parseQuantity(resource, text string, up bool) (int64, error) {
	d, err := parseDecimal(text)
	if err != nil {
		return 0, err
	}
	switch resource {
	case "cpu":
		d.exp10 += 3
	case "memory", "disk":
		d.exp2 -= 20
	case "network":
		d.exp10 -= 6
	}
	n, err := d.whole(up)
	if err != nil {
		return 0, fmt.Errorf("%q is %w", text, err)
	}
	return n, nil
}

// decimal is digits × 10^exp10 × 2^exp2, exactly.
type decimal struct {
	negative    bool
	digits      string
	exp10, exp2 int
}

// maxQuantityLen bounds the digits that are parsed: MaxAmount in the smallest unit,
// n (10^-9), has 24.
const maxQuantityLen = 64

func parseDecimal(text string) (decimal, error) {
	var d decimal
	bad := func(why string) (decimal, error) {
		return d, fmt.Errorf("%.70q is %w: %s", text, ErrInvalidQuantity, why)
	}
	if len(text) > maxQuantityLen {
		return bad("it is too long")
	}
	rest := text
	switch {
	case strings.HasPrefix(rest, "-"):
		d.negative, rest = true, rest[1:]
	case strings.HasPrefix(rest, "+"):
		rest = rest[1:]
	}
	whole := leadingDigits(rest)
	rest = rest[len(whole):]
	var fraction string
	if strings.HasPrefix(rest, ".") {
		fraction = leadingDigits(rest[1:])
		rest = rest[1+len(fraction):]
	}
	d.digits = strings.TrimLeft(whole+fraction, "0")
	d.exp10 = -len(fraction)
	if whole+fraction == "" {
		return bad("it does not start with a number")
	}
	if !d.scale(rest) {
		return bad(fmt.Sprintf("unknown suffix %q", rest))
	}
	return d, nil
}

func leadingDigits(s string) string {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return s[:i]
		}
	}
	return s
}

// scale applies the suffix of a Kubernetes quantity and reports whether it is
// one.
func (d *decimal) scale(suffix string) bool {
	if len(suffix) == 2 && suffix[1] == 'i' {
		i := strings.IndexByte("KMGTPE", suffix[0])
		d.exp2 += 10 * (i + 1)
		return i >= 0
	}
	switch suffix {
	case "":
	case "n":
		d.exp10 -= 9
	case "u":
		d.exp10 -= 6
	case "m":
		d.exp10 -= 3
	case "k":
		d.exp10 += 3
	case "M":
		d.exp10 += 6
	case "G":
		d.exp10 += 9
	case "T":
		d.exp10 += 12
	case "P":
		d.exp10 += 15
	case "E":
		d.exp10 += 18
	default:
		if suffix[0] != 'e' && suffix[0] != 'E' {
			return false
		}
		e, err := strconv.ParseInt(suffix[1:], 10, 16)
		d.exp10 += int(e)
		return err == nil
	}
	return true
}

// whole rounds to an integer. The bounds on the exponent keep a short text
// from becoming a number of thousands of digits.
func (d *decimal) whole(up bool) (int64, error) {
	switch {
	case d.digits == "":
		return 0, nil
	case d.negative:
		return 0, ErrNegativeQuantity
	case len(d.digits)+d.exp10 > maxQuantityLen:
		return 0, fmt.Errorf("%w: at most %d", ErrQuantityTooLarge, int64(MaxAmount))
	case len(d.digits)+d.exp10 < -maxQuantityLen:
		return d.sliver(up), nil
	}
	num, _ := new(big.Int).SetString(d.digits, 10)
	den := big.NewInt(1)
	shift := func(on *big.Int, base, exp int) {
		on.Mul(on, new(big.Int).Exp(big.NewInt(int64(base)), big.NewInt(int64(exp)), nil))
	}
	shift(num, 10, max(d.exp10, 0))
	shift(den, 10, max(-d.exp10, 0))
	shift(num, 2, max(d.exp2, 0))
	shift(den, 2, max(-d.exp2, 0))
	quotient, rest := new(big.Int).QuoRem(num, den, new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(d.sliver(up)))
	}
	if !quotient.IsInt64() || quotient.Int64() > MaxAmount {
		return 0, fmt.Errorf("%w: at most %d", ErrQuantityTooLarge, int64(MaxAmount))
	}
	return quotient.Int64(), nil
}

// sliver returns the result of rounding an amount between 0 and 1.
func (d *decimal) sliver(up bool) int64 {
	if up {
		return 1
	}
	return 0
}
