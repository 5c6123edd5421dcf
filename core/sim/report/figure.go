package report

import (
	"fmt"
	"strconv"
	"strings"
)

// figure consists of panels, a legend and its numbers as a table.
type figure struct {
	Title  string
	Note   string
	Legend []legend
	Panels []panel
	Data   data
}

type legend struct{ Name, Class, Kind string }

// data holds the numbers of a figure as a table, for readers without the image.
type data struct {
	Header []string
	Rows   [][]string
}

func (d *data) add(cells ...string) { d.Rows = append(d.Rows, cells) }

// panel is one SVG. Coordinates are pixels of its view box.
type panel struct {
	Title, Desc    string
	Width, Height  int
	Left, Right    string // edges of the plot
	Top, Bottom    string
	XTicks, YTicks []tick
	XLabel, YLabel string
	XMid, YMid     string
	Lines          []line
	Boxes          []box
	Dots           []dot
	Texts          []text
}

type tick struct{ At, Label string }

type line struct{ Points, Class string }

type box struct{ X, Y, Width, Height, Class, Tip string }

type dot struct {
	X, Y, Class, Tip string
	Shape            int // in marks
	Size             string
	Faint            bool
	Path             string
}

type text struct{ X, Y, Class, Text, Anchor string }

// Margins around a plot, in pixels.
const (
	marginLeft   = 64
	marginRight  = 16
	marginTop    = 26
	marginBottom = 46
)

// plot returns an empty panel and sets the pixel range of its axes.
func plot(title, desc string, width, height int, x, y *axis, xLabel, yLabel string) panel {
	x.from, x.to = marginLeft, float64(width-marginRight)
	y.from, y.to = float64(height-marginBottom), marginTop
	p := panel{
		Title: title, Desc: desc, Width: width, Height: height, XLabel: xLabel, YLabel: yLabel,
		Left: px(x.from), Right: px(x.to), Top: px(y.to), Bottom: px(y.from),
		XMid: px((x.from + x.to) / 2), YMid: px((y.from + y.to) / 2),
	}
	for _, v := range x.ticks {
		p.XTicks = append(p.XTicks, tick{px(x.at(v)), x.format(v)})
	}
	for _, v := range y.ticks {
		p.YTicks = append(p.YTicks, tick{px(y.at(v)), y.format(v)})
	}
	return p
}

// px formats a coordinate with one decimal: below the visible resolution, and coarser
// than any rounding error.
func px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// series returns the CSS class with the colour and dash of the i-th policy.
func series(i int) string { return "s" + strconv.Itoa(i%8) }

// polyline accumulates the points of a line.
type polyline struct{ strings.Builder }

func (l *polyline) to(x, y float64) {
	if l.Len() > 0 {
		l.WriteByte(' ')
	}
	l.WriteString(px(x) + "," + px(y))
}

// marks names the shapes of markers, in the order of policies.
var marks = [...]string{"circle", "square", "triangle", "diamond"}

// mark returns the marker of policy i with radius r at (x, y).
func mark(i int, x, y, r float64, faint bool, tip string) dot {
	d := dot{X: px(x), Y: px(y), Class: series(i), Shape: i % len(marks), Size: px(r), Faint: faint, Tip: tip}
	switch d.Shape {
	case 1:
		d.Path = fmt.Sprintf("M%s %sh%sv%sh-%sz", px(x-r), px(y-r), px(2*r), px(2*r), px(2*r))
	case 2:
		d.Path = fmt.Sprintf("M%s %sL%s %sL%s %sz", px(x), px(y-1.2*r), px(x+1.1*r), px(y+0.9*r), px(x-1.1*r), px(y+0.9*r))
	case 3:
		d.Path = fmt.Sprintf("M%s %sL%s %sL%s %sL%s %sz", px(x), px(y-1.3*r), px(x+1.3*r), px(y), px(x), px(y+1.3*r), px(x-1.3*r), px(y))
	}
	return d
}

// legend lists the drawn policies.
func (d drawn) legend() []legend {
	var out []legend
	for _, it := range d.items() {
		out = append(out, legend{it.policy, series(it.at), "line"})
	}
	return out
}
