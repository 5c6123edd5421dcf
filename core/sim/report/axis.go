package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/sim/compare"
)

// axis maps values to pixels.
type axis struct {
	low, high float64 // values
	from, to  float64 // pixels
	log       bool
	ticks     []float64
	format    func(float64) string
}

func (a *axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = log2(max(v, low)), log2(low), log2(high)
	}
	if high == low {
		return a.from
	}
	return a.from + float64((v-low)/(high-low)*(a.to-a.from))
}

// log2 is accurate to ten digits. It uses only operations that round equally on every
// machine, so that pages are identical everywhere.
func log2(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	z := (fraction - 1) / (fraction + 1)
	square, power, sum := float64(z*z), z, 0.0
	for k := 1.0; k < 60; k += 2 {
		sum += power / k
		power = float64(power * square)
	}
	return float64(exponent) + float64(sum*2)/math.Ln2
}

// linear returns an axis from 0 to high with round steps.
func linear(high float64, format func(float64) string) axis {
	if high <= 0 {
		high = 1
	}
	step := roundStep(high / 4)
	a := axis{format: format}
	for i := 0; ; i++ {
		v := float64(float64(i) * step)
		a.ticks = append(a.ticks, v)
		if v >= high*0.999 {
			a.high = v
			return a
		}
	}
}

// roundStep returns the smallest of 1, 2, 5 times a power of ten not below x.
func roundStep(x float64) float64 {
	power := 1.0
	for power > x {
		power /= 10
	}
	for power*10 <= x {
		power *= 10
	}
	for _, m := range [...]float64{1, 2, 5} {
		if power*m >= x*0.999 {
			return power * m
		}
	}
	return power * 10
}

// share returns an axis from 0 to 1.
func share() axis {
	return axis{high: 1, ticks: []float64{0, 0.25, 0.5, 0.75, 1}, format: percent}
}

func percent(v float64) string { return strconv.FormatFloat(v*100, 'f', -1, 64) + " %" }

// count returns an axis of integers.
func count(high float64) axis {
	a := linear(max(high, 1), compare.Number)
	whole := a.ticks[:0]
	for _, t := range a.ticks {
		if t == math.Trunc(t) {
			whole = append(whole, t)
		}
	}
	a.ticks = whole
	return a
}

// roundTimes lists round durations in seconds.
var roundTimes = []float64{
	0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600,
	86400, 2 * 86400, 5 * 86400, 10 * 86400, 30 * 86400,
}

// elapsed returns an axis from 0 to high seconds of a run.
func elapsed(high float64) axis {
	a := axis{high: max(high, 1e-9), format: span}
	step := a.high
	for _, s := range roundTimes {
		if a.high/s <= 6 {
			step = s
			break
		}
	}
	for i := 0; float64(float64(i)*step) <= a.high*1.0001; i++ {
		a.ticks = append(a.ticks, float64(float64(i)*step))
	}
	return a
}

// waitMarks are the ticks of a logarithmic axis of seconds.
var waitMarks = []float64{
	0.0001, 0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 6 * 3600, 86400, 10 * 86400, 100 * 86400, 1000 * 86400,
}

// waits returns a logarithmic axis from low to high seconds. It starts below low, so
// that zero waits appear at its left edge.
func waits(low, high float64) axis {
	first := 0
	for first+1 < len(waitMarks) && waitMarks[first+1] < low {
		first++
	}
	a := axis{low: waitMarks[first], high: max(high, waitMarks[min(first+1, len(waitMarks)-1)]), log: true, format: span}
	for _, t := range roundTimes {
		if t >= a.high {
			a.high = t
			break
		}
	}
	for _, t := range waitMarks[first:] {
		if t <= a.high {
			a.ticks = append(a.ticks, t)
		}
	}
	return a
}

// span formats seconds in the largest suitable unit.
func span(s float64) string {
	switch {
	case s == 0:
		return "0"
	case s < 1:
		return trim(s*1000) + " ms"
	case s < 60:
		return trim(s) + " s"
	case s < 3600:
		return trim(s/60) + " min"
	case s < 86400:
		return trim(s/3600) + " h"
	}
	return trim(s/86400) + " d"
}

func trim(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

// instant formats a time of a run as in results.
func instant(ns int64) string { return time.Duration(ns).String() }
