package report

import (
	"fmt"
	"strconv"
)

// heatmap draws victims by priority of preemptor and victim, one panel per policy.
func heatmap(d drawn) *figure {
	f := &figure{
		Title: "Evictions by priority",
		Note: "Victims by the priority of the preemptor and of the victim. Cells near the diagonal are narrow gaps: the " +
			"preemptor is hardly more important than its victim.",
		Data: data{Header: []string{"Policy", "Preemptor's priority", "Victims' priority", "victims"}},
	}
	most := 0
	for _, it := range d.items() {
		for _, row := range it.run.Series.Victims {
			for _, n := range row {
				most = max(most, n)
			}
		}
	}
	if most == 0 {
		return nil
	}
	for _, it := range d.items() {
		f.Panels = append(f.Panels, heatmapPanel(it, most, &f.Data))
	}
	return f
}

func heatmapPanel(it item, most int, table *data) panel {
	bands, victims := it.run.Series.Bands, it.run.Series.Victims
	n := len(bands)
	const cell, side = 40, 320
	height := marginTop + marginBottom + cell*n
	x, y := axis{high: 1}, axis{high: 1}
	p := plot(it.policy, "Victims by preemptor's and victims' priority under "+it.policy+".",
		max(440, marginLeft+marginRight+n*cell), height, &x, &y, "victims' priority", "preemptor's priority")
	width := min(float64(side)/float64(n)*1.1, (x.to-x.from)/float64(n))
	for v, name := range bands {
		p.XTicks = append(p.XTicks, tick{px(x.from + float64((float64(v)+0.5)*width)), name})
	}
	for by := range bands {
		top := y.from - float64(cell*(by+1))
		p.YTicks = append(p.YTicks, tick{px(top + cell/2), bands[by]})
		for v := range bands {
			count := victims[by][v]
			b := box{
				X: px(x.from + float64(float64(v)*width) + 1), Y: px(top + 1), Width: px(width - 2), Height: px(cell - 2),
				Class: "q0",
				Tip:   fmt.Sprintf("priority %s evicted %d of priority %s", bands[by], count, bands[v]),
			}
			if count > 0 {
				level := 1 + count*7/most
				b.Class = "q" + strconv.Itoa(min(level, 8))
				p.Texts = append(p.Texts, text{
					px(x.from + float64((float64(v)+0.5)*width)), px(top + cell/2 + 4), "on" + strconv.Itoa(min(level, 8)), strconv.Itoa(count), "middle",
				})
				table.add(it.policy, bands[by], bands[v], strconv.Itoa(count))
			}
			p.Boxes = append(p.Boxes, b)
		}
	}
	return p
}
