package report

import (
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// barHeight is the height of one policy in a horizontal bar chart.
const barHeight = 30

// waste draws the lost work of victims, stacked by their priority: one panel per
// resource and one bar per policy.
func waste(d drawn) *figure {
	f := &figure{
		Title: "Lost work by priority of the victims",
		Note:  "Work since the start or the last checkpoint, summed over all victims. Shorter is better.",
		Data:  data{Header: []string{"Resource", "Policy", "Victims' priority", "lost work", "unit"}},
	}
	items := d.items()
	if len(items) == 0 {
		return nil
	}
	used := map[string]bool{}
	var bands, resources []string
	for _, it := range items {
		s := it.run.Series
		for b, row := range s.Wasted {
			for r, v := range row {
				if v > 0 {
					used[s.Bands[b]] = true
					if !slices.Contains(resources, s.Resources[r]) {
						resources = append(resources, s.Resources[r])
					}
				}
			}
		}
	}
	for _, b := range items[0].run.Series.Bands {
		if used[b] {
			bands = append(bands, b)
		}
	}
	if len(bands) == 0 {
		return nil
	}
	for i, b := range bands {
		f.Legend = append(f.Legend, legend{"priority " + b, shade(i, len(bands)), "box"})
	}
	for _, name := range resources {
		f.Panels = append(f.Panels, d.wastePanel(name, bands, &f.Data))
	}
	return f
}

// shade returns a class of the sequential colour scale, lightest first.
func shade(i, n int) string {
	if n == 1 {
		return "q5"
	}
	return "q" + strconv.Itoa(3+i*5/(n-1))
}

func (d drawn) wastePanel(resource string, bands []string, table *data) panel {
	items := d.items()
	unit, size := metrics.WorkUnit(resource)
	amount := func(it item, band string) float64 {
		s := it.run.Series
		b, r := slices.Index(s.Bands, band), slices.Index(s.Resources, resource)
		if b < 0 || r < 0 {
			return 0
		}
		return s.Wasted[b][r] / size
	}
	most := 0.0
	for _, it := range items {
		sum := 0.0
		for _, b := range bands {
			sum += amount(it, b)
		}
		most = max(most, sum)
	}
	x, y := linear(most, compare.Number), axis{high: 1}
	height := marginTop + marginBottom + barHeight*len(items)
	p := plot(resource, "Lost "+resource+" under each policy, stacked by the priority of the victims.",
		440, height, &x, &y, unit, "")
	for i, it := range items {
		top := float64(marginTop + i*barHeight + 5)
		p.Texts = append(p.Texts, text{px(marginLeft - 8), px(top + 14), "label", ellipsis(it.policy, 9), "end"})
		from := 0.0
		for k, b := range bands {
			v := amount(it, b)
			if v == 0 {
				continue
			}
			p.Boxes = append(p.Boxes, box{
				X: px(x.at(from)), Y: px(top), Width: px(max(x.at(from+v)-x.at(from), 0.5)), Height: px(barHeight - 10),
				Class: shade(k, len(bands)),
				Tip:   it.policy + ", priority " + b + ": " + compare.Number(v) + " " + unit,
			})
			from += v
			table.add(resource, it.policy, b, compare.Number(v), unit)
		}
	}
	return p
}

func ellipsis(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
