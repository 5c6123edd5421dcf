package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// bins is the number of bars in a timeline of evictions.
const bins = 72

// evictions draws victims over time, one panel per policy, coloured by the length of
// their eviction chain.
func evictions(d drawn) *figure {
	end := d.end()
	type bin struct{ victims, depth int }
	all := make([][]bin, len(d.policies))
	most, total, deepest := 0, 0, 0
	for _, it := range d.items() {
		row := make([]bin, bins)
		for _, p := range it.run.Series.Points {
			b := &row[min(bins-1, int(p.At/max(end, 1e-9)*bins))]
			b.victims += p.Victims
			b.depth = max(b.depth, p.Depth)
			most, total, deepest = max(most, b.victims), total+p.Victims, max(deepest, p.Depth)
		}
		all[it.at] = row
	}
	if total == 0 || end == 0 {
		return nil
	}
	f := &figure{
		Title: "Evictions over time",
		Note: fmt.Sprintf("Victims in each %s. The colour shows the longest eviction chain in a bar: in a chain of 2, a victim evicted others in "+
			"order to run again.",
			span(end/bins)),
		Data: data{Header: []string{"Policy", "victims", "most in one bar", "deepest chain"}},
	}
	for i := 1; i <= min(deepest, 3); i++ {
		name := "chain of " + strconv.Itoa(i)
		if i == 3 && deepest > 3 {
			name += " or more"
		}
		f.Legend = append(f.Legend, legend{name, "d" + strconv.Itoa(i), "box"})
	}
	for _, it := range d.items() {
		x, y := elapsed(end), count(float64(most))
		p := plot(it.policy, "Victims over time under "+it.policy+".", 440, 210, &x, &y, "time since the start", "victims")
		width := (x.to - x.from) / bins
		peak, deep := 0, 0
		for i, b := range all[it.at] {
			if b.victims == 0 {
				continue
			}
			top := y.at(float64(b.victims))
			p.Boxes = append(p.Boxes, box{
				X: px(x.from + float64(float64(i)*width)), Y: px(top), Width: px(max(width-0.8, 0.6)), Height: px(y.from - top),
				Class: "d" + strconv.Itoa(min(max(b.depth, 1), 3)),
				Tip:   fmt.Sprintf("%d victims around %s, chain of %d", b.victims, span(end*(float64(i)+0.5)/bins), b.depth),
			})
			peak, deep = max(peak, b.victims), max(deep, b.depth)
		}
		f.Panels = append(f.Panels, p)
		f.Data.add(it.policy, strconv.Itoa(it.run.Metrics.Victims), strconv.Itoa(peak), strconv.Itoa(deep))
	}
	return f
}

func utilisation(d drawn) *figure {
	return d.shares("Utilisation over time", "capacity in use",
		"Share of the capacity of ready nodes that placed allocations hold.",
		func(p *metrics.Point) []float64 { return p.Utilisation },
		func(m *metrics.Metrics) map[string]float64 { return m.Utilisation })
}

func fragmentation(d drawn) *figure {
	return d.shares("Fragmentation over time", "stranded share",
		"Share of the free capacity on nodes that cannot fit the scenario's typical request: lower is better.",
		func(p *metrics.Point) []float64 { return p.Fragmentation },
		func(m *metrics.Metrics) map[string]float64 { return m.Fragmentation })
}

// shares draws a share of each resource over time.
func (d drawn) shares(
	title, yLabel, note string, of func(*metrics.Point) []float64, mean func(*metrics.Metrics) map[string]float64,
) *figure {
	f := &figure{
		Title: title, Note: note, Legend: d.legend(),
		Data: data{Header: []string{"Resource", "Policy", "mean over the run"}},
	}
	end := d.end()
	var resources []string
	for _, it := range d.items() {
		for r, name := range it.run.Series.Resources {
			used := slices.ContainsFunc(it.run.Series.Points, func(p metrics.Point) bool { return of(&p)[r] > 0 })
			if used && !slices.Contains(resources, name) {
				resources = append(resources, name)
			}
		}
	}
	if len(resources) == 0 || end == 0 {
		return nil
	}
	for _, name := range resources {
		x, y := elapsed(end), share()
		p := plot(name, title+" of "+name+" under each policy.", 440, 230, &x, &y, "time since the start", yLabel)
		for _, it := range d.items() {
			if r := slices.Index(it.run.Series.Resources, name); r >= 0 {
				p.Lines = append(p.Lines, steps(it.run, &x, &y, series(it.at), func(p *metrics.Point) float64 { return of(p)[r] }))
			}
			if v, ok := mean(it.run.Metrics)[name]; ok {
				f.Data.add(name, it.policy, compare.Number(v*100)+" %")
			}
		}
		f.Panels = append(f.Panels, p)
	}
	return f
}

// steps draws a value that is constant over the width of each point.
func steps(r *compare.Run, x, y *axis, class string, of func(*metrics.Point) float64) line {
	var l polyline
	for i := range r.Series.Points {
		p := &r.Series.Points[i]
		v := y.at(of(p))
		l.to(x.at(p.At), v)
		l.to(x.at(min(p.At+r.Series.Width, r.Series.End)), v)
	}
	return line{l.String(), class}
}
