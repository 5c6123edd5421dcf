package model

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseQuantity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		resource, text string
		up, down       int64
	}{
		{"cpu", "500m", 500, 500},
		{"cpu", "2", 2000, 2000},
		{"cpu", "0.1", 100, 100},
		{"cpu", ".5", 500, 500},
		{"cpu", "5.", 5000, 5000},
		{"cpu", "+1", 1000, 1000},
		{"cpu", "1e1", 10000, 10000},
		{"cpu", "1E", 0, 0}, // exa, far too much
		{"cpu", "100u", 1, 0},
		{"cpu", "1n", 1, 0},
		{"cpu", "1k", 1000000, 1000000},
		{"memory", "2Gi", 2048, 2048},
		{"memory", "1.5Gi", 1536, 1536},
		{"memory", "512Mi", 512, 512},
		{"memory", "1G", 954, 953},
		{"memory", "16393316Ki", 16010, 16009},
		{"memory", "1e9", 954, 953},
		{"memory", "128974848", 123, 123},
		{"memory", "1Ei", 1 << 40, 1 << 40},
		{"disk", "1Ti", 1 << 20, 1 << 20},
		{"disk", "1", 1, 0},
		{"network", "1G", 1000, 1000},
		{"network", "100M", 100, 100},
		{"network", "1Gi", 1074, 1073},
		{"nvidia.com/gpu", "2", 2, 2},
		{"licences", "1k", 1000, 1000},
		{"licences", "1500m", 2, 1},
		{"licences", "0", 0, 0},
		{"licences", "-0", 0, 0},
		{"licences", "0e9999", 0, 0},
		{"licences", "1e-9999", 1, 0},
		{"licences", "281474976710656", MaxAmount, MaxAmount},
	} {
		up, err := ParseQuantity(c.resource, c.text)
		if c.text == "1E" {
			if !errors.Is(err, ErrQuantityTooLarge) {
				t.Errorf("ParseQuantity(%q, %q): %v, want ErrHugeQuantity", c.resource, c.text, err)
			}
			continue
		}
		if err != nil || up != c.up {
			t.Errorf("ParseQuantity(%q, %q) = %d, %v; want %d", c.resource, c.text, up, err, c.up)
		}
		if down, err := ParseCapacity(c.resource, c.text); err != nil || down != c.down {
			t.Errorf("ParseCapacity(%q, %q) = %d, %v; want %d", c.resource, c.text, down, err, c.down)
		}
	}
}

func TestParseQuantity_Refuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"":                       ErrInvalidQuantity,
		"-":                      ErrInvalidQuantity,
		".":                      ErrInvalidQuantity,
		"two":                    ErrInvalidQuantity,
		"2 Gi":                   ErrInvalidQuantity,
		"2Gb":                    ErrInvalidQuantity,
		"2gi":                    ErrInvalidQuantity,
		"2ki":                    ErrInvalidQuantity,
		"2mi":                    ErrInvalidQuantity,
		"1e":                     ErrInvalidQuantity,
		"1e1.5":                  ErrInvalidQuantity,
		"1e99999999999":          ErrInvalidQuantity,
		"NaN":                    ErrInvalidQuantity,
		"Inf":                    ErrInvalidQuantity,
		"0x10":                   ErrInvalidQuantity,
		"1_000":                  ErrInvalidQuantity,
		"-1":                     ErrNegativeQuantity,
		"-1m":                    ErrNegativeQuantity,
		"1e30":                   ErrQuantityTooLarge,
		"1e9999":                 ErrQuantityTooLarge,
		"99999999999999999999":   ErrQuantityTooLarge,
		"281474976710657":        ErrQuantityTooLarge,
		strings.Repeat("9", 100): ErrInvalidQuantity,
	} {
		if n, err := ParseQuantity("licences", text); !errors.Is(err, want) {
			t.Errorf("ParseQuantity(%q) = %d, %v; want %v", text, n, err, want)
		}
	}
}

// TestParseQuantity_RoundsTheExactValue compares with big rationals.
func TestParseQuantity_RoundsTheExactValue(t *testing.T) {
	t.Parallel()
	units := map[string]*big.Rat{
		"cpu": big.NewRat(1000, 1), "memory": big.NewRat(1, 1<<20), "network": big.NewRat(1, 1e6), "x": big.NewRat(1, 1),
	}
	rapid.Check(t, func(t *rapid.T) {
		resource := rapid.SampledFrom([]string{"cpu", "memory", "network", "x"}).Draw(t, "resource")
		number := rapid.StringMatching(`[0-9]{1,9}(\.[0-9]{1,9})?(e-?[0-9])?`).Draw(t, "number")
		exact, _ := new(big.Rat).SetString(number)
		exact.Mul(exact, units[resource])
		up, err := ParseQuantity(resource, number)
		down, _ := ParseCapacity(resource, number)
		if errors.Is(err, ErrQuantityTooLarge) && exact.Cmp(big.NewRat(MaxAmount, 1)) > 0 {
			return
		}
		whole := new(big.Int).Quo(exact.Num(), exact.Denom()).Int64()
		if down != whole || up < whole || up > whole+1 || (up == whole) != exact.IsInt() || err != nil {
			t.Fatalf("%s of %s: up %d, down %d, %v; exact %s", number, resource, up, down, err, exact.FloatString(9))
		}
	})
}

func BenchmarkParseQuantity(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = ParseQuantity("memory", "1536Mi")
	}
}
