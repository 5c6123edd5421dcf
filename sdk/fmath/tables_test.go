package fmath

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"math"
	"math/big"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite tables.go and testdata")

// TestTables_MatchTheirDefinition computes the constants and tables from their
// definitions with math/big and compares them with tables.go. With -rewrite it writes
// that file.
func TestTables_MatchTheirDefinition(t *testing.T) {
	t.Parallel()
	want := tables(t)
	if *rewrite {
		if err := os.WriteFile("tables.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile("tables.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("tables.go does not match its definitions; run this test with -rewrite and review the diff")
	}
}

func tables(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	p := func(f string, a ...any) { fmt.Fprintf(&b, f+"\n", a...) }
	ln2, ln10 := bigLog(bigFloat(2)), bigLog(bigFloat(10))
	log102 := quo(ln2, ln10)
	steps := bigFloat(expSteps)

	p("// Computed by TestTables_MatchTheirDefinition -rewrite.\n")
	p("package fmath\n")
	p("const (")
	p("// A step is 1/128 of a doubling: PerStep steps make one unit of the argument;")
	p("// StepHi and StepLo add up to a step, with room in StepHi for exact multiples.")
	hi, lo := split(quo(ln2, steps), 33)
	p("expPerStep = %s", lit(quo(steps, ln2)))
	p("expStepHi = %s", hexf(hi))
	p("expStepLo = %s", hexf(lo))
	hi, lo = split(quo(log102, steps), 33)
	p("exp10PerStep = %s", lit(quo(steps, log102)))
	p("exp10StepHi = %s", hexf(hi))
	p("exp10StepLo = %s", hexf(lo))
	p("")
	p("// exp10C1 to exp10C5 are ln(10)^i / i!.")
	c := bigFloat(1)
	for i := 1; i <= 5; i++ {
		c = quo(mul(c, ln10), bigFloat(float64(i)))
		p("exp10C%d = %s", i, lit(c))
	}
	p(")\n")

	p("// expTable[j] is 2^(j/128): the bits of the nearest float64, and how far above")
	p("// that the true value is, in proportion.")
	p("var expTable = [expSteps]struct {\nbits uint64\ntail float64\n}{")
	root := bigFloat(2)
	for range expBits {
		root = newBig().Sqrt(root)
	}
	v := bigFloat(1)
	for range expSteps {
		f, _ := v.Float64()
		p("{%#016x, %s},", math.Float64bits(f), lit(sub(quo(v, bigFloat(f)), bigFloat(1))))
		v = mul(v, root)
	}
	p("}")

	p("")
	p("const (")
	p("// ln2Hi is ln(2) to 42 binary places, so that its multiples and their sums")
	p("// with logTable[i].hi are exact; ln2Lo is the rest.")
	hi, lo = places(ln2, 42)
	p("ln2Hi = %s", hexf(hi))
	p("ln2Lo = %s", hexf(lo))
	p(")\n")
	p("// logTable[i] belongs to the mantissas from 1+i/128 on, which from logHalve on")
	p("// are halved: inverse, a multiple of 1/1024, is about one over the middle of")
	p("// them, and hi and lo add up to the logarithm of one over inverse.")
	p("var logTable = [logSteps]struct{ inverse, hi, lo float64 }{")
	for i := range logSteps {
		middle := 1 + (float64(i)+0.5)/logSteps
		if i >= logHalve {
			middle /= 2
		}
		inverse := math.Round(1024/middle) / 1024
		if i == 0 || i == logSteps-1 {
			inverse = 1 // for mantissas next to 1, the argument itself is the most exact
		}
		hi, lo := places(sub(bigFloat(0), bigLog(bigFloat(inverse))), 42)
		p("{%s, %s, %s},", hexf(inverse), hexf(hi), hexf(lo))
	}
	p("}")

	src, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// split returns x as a float64 of at most bits bits and the float64 nearest to the
// remainder.
func split(x *big.Float, bits uint) (hi, lo float64) {
	hi, _ = new(big.Float).SetPrec(bits).Set(x).Float64()
	lo, _ = sub(x, bigFloat(hi)).Float64()
	return hi, lo
}

// places is like split, with hi a multiple of 2^-n.
func places(x *big.Float, n int) (hi, lo float64) {
	f, _ := shift(x, n).Float64()
	hi = math.Ldexp(math.Round(f), -n)
	lo, _ = sub(x, bigFloat(hi)).Float64()
	return hi, lo
}

func lit(x *big.Float) string {
	f, _ := x.Float64()
	return hexf(f)
}

func hexf(f float64) string { return fmt.Sprintf("%x", f) }
