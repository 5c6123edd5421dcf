package report

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// delays draws the distribution of queue delays, one panel per priority band.
func delays(d drawn) *figure {
	f := &figure{
		Title: "Queue delay by priority",
		Note: "Share of waits that ended within the time below: higher and further left is better. " +
			"The time axis is logarithmic; shorter waits appear at its left edge.",
		Legend: d.legend(),
		Data:   data{Header: []string{"Priority", "Policy", "median", "p90", "p99", "longest"}},
	}
	low, high := 0.0, 0.0
	var bands []string
	for _, it := range d.items() {
		for b, c := range it.run.Series.Delays {
			if len(c.Seconds) == 0 {
				continue
			}
			if band := it.run.Series.Bands[b]; !slices.Contains(bands, band) {
				bands = append(bands, band)
			}
			for _, s := range c.Seconds {
				if s > 0 && (low == 0 || s < low) {
					low = s
				}
				high = max(high, s)
			}
		}
	}
	if high == 0 {
		return nil // no instance waited: the figure would be empty
	}
	slices.SortFunc(bands, func(a, b string) int { return metrics.CompareBands(b, a) })
	for _, band := range bands {
		f.Panels = append(f.Panels, d.delayPanel(band, low, high, &f.Data))
	}
	return f
}

func (d drawn) delayPanel(band string, low, high float64, table *data) panel {
	x, y := waits(low, high), share()
	p := plot("Priority "+band, "Distribution of queue delays at priority "+band+" under each policy.",
		440, 250, &x, &y, "waited at most", "share of waits")
	for _, it := range d.items() {
		b := slices.Index(it.run.Series.Bands, band)
		if b < 0 || len(it.run.Series.Delays[b].Seconds) == 0 {
			continue
		}
		c := it.run.Series.Delays[b]
		var l polyline
		before := 0.0
		l.to(x.from, y.at(0))
		for i, s := range c.Seconds {
			l.to(x.at(s), y.at(before))
			l.to(x.at(s), y.at(c.Share[i]))
			before = c.Share[i]
		}
		l.to(x.to, y.at(1))
		p.Lines = append(p.Lines, line{l.String(), series(it.at)})
		q := it.run.Metrics.QueueDelay[band]
		table.add(band, it.policy, span(q.P50), span(q.P90), span(q.P99), span(q.Max))
	}
	p.Desc += fmt.Sprintf(" Times run from %s to %s.", span(x.low), span(x.high))
	return p
}
