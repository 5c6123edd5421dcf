package report

import (
	"slices"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/statistics"
)

// scatter draws the trade-off of preemption: the delay of the highest priority
// against goodput. Each run is a faint mark, the median of each policy a solid one.
func scatter(d *compare.Document) *figure {
	f := &figure{
		Title: "Trade-off: delay of the highest priority against goodput",
		Note:  "Each faint mark is a run; each solid mark is the median of a policy. Up and left is better.",
		Data:  data{Header: []string{"Policy", "Scenario", "Seed", "p99 delay, highest priority", "goodput"}},
	}
	delays, goodputs := make([][]float64, len(d.Policies)), make([][]float64, len(d.Policies))
	least, most, slowest := 1.0, 0.0, 0.0
	for i := range d.Runs {
		r := &d.Runs[i]
		delay, ok := highest(r.Metrics)
		if !ok || r.Metrics.Goodput == nil {
			continue
		}
		at := slices.Index(d.Policies, r.Policy)
		delays[at], goodputs[at] = append(delays[at], delay), append(goodputs[at], *r.Metrics.Goodput)
		least, most, slowest = min(least, *r.Metrics.Goodput), max(most, *r.Metrics.Goodput), max(slowest, delay)
		f.Data.add(r.Policy, r.Scenario, number(r.Seed), span(delay), compare.Number(*r.Metrics.Goodput*100)+" %")
	}
	if len(f.Data.Rows) == 0 {
		return nil
	}
	x, y := linear(slowest, span), zoomed(least, most)
	if slowest > 60 {
		x = elapsed(slowest * 1.05)
	}
	x.low -= x.high / 30 // space for marks of policies without delay
	p := plot("Goodput against delay", "Goodput against the 99th percentile delay of the highest priority.",
		640, 320, &x, &y, "p99 delay of the highest priority", "goodput")
	for at, policy := range d.Policies {
		for i := range delays[at] {
			p.Dots = append(p.Dots, mark(at, x.at(delays[at][i]), y.at(goodputs[at][i]), 4, true, policy))
		}
	}
	for at, policy := range d.Policies {
		if len(delays[at]) == 0 {
			continue
		}
		mx, my := statistics.Median(delays[at]), statistics.Median(goodputs[at])
		p.Dots = append(p.Dots, mark(at, x.at(mx), y.at(my), 7, false,
			policy+": "+span(mx)+", "+compare.Number(my*100)+" %"))
		f.Legend = append(f.Legend, legend{policy, series(at), marks[at%len(marks)]})
	}
	f.Panels = []panel{p}
	return f
}

// zoomed returns an axis of shares from least to most in round steps, so that
// differences of a tenth of a percent remain visible.
func zoomed(least, most float64) axis {
	step := roundStep(max(most-least, 0.003) / 3)
	a := axis{format: func(v float64) string { return compare.Number(v*100) + " %" }}
	for i := int(least/step) - 1; ; i++ {
		v := float64(float64(i) * step)
		if v < 0 || v+step <= least {
			continue
		}
		a.ticks = append(a.ticks, v)
		if v >= most || v >= 1 {
			break
		}
	}
	a.low, a.high = a.ticks[0], a.ticks[len(a.ticks)-1]
	return a
}

// highest returns the p99 delay of the highest priority band, or false if no instance
// waited.
func highest(m *metrics.Metrics) (float64, bool) {
	best := ""
	for band := range m.QueueDelay {
		if best == "" || metrics.CompareBands(band, best) > 0 {
			best = band
		}
	}
	return m.QueueDelay[best].P99, best != ""
}
