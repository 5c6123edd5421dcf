package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/statistics"
)

// minWidth is the minimum width of a table. If a terminal reports less, lines wrap.
const minWidth = 40

// WriteTable writes the comparison as text: the metrics, then the differing
// decisions. If the columns do not fit in width, the remaining ones follow below with
// the metrics repeated. If width is 0, it is unlimited.
func (d *Document) WriteTable(w io.Writer, width int) error {
	t := text{w: w}
	t.summary(d, width)
	t.bounds(d, width)
	t.decisions(d, width)
	return t.err
}

// text is a writer that retains its first error.
type text struct {
	w   io.Writer
	err error
}

func (t *text) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, strings.TrimRight(fmt.Sprintf(format, args...), " ")+"\n")
	}
}

// column holds the cells of one policy, header first, padded to one width.
type column struct {
	cells []string
	width int
}

func (c *column) add(cell string) {
	c.cells = append(c.cells, cell)
	c.width = max(c.width, utf8.RuneCountInString(cell))
}

func (t *text) summary(d *Document, width int) {
	var names column
	names.add("METRIC")
	rows := slices.DeleteFunc(slices.Clone(d.Summary), func(r Row) bool { return r.Zero() || isRaw(&r) })
	for i := range rows {
		names.add(label(&rows[i]) + " " + arrow(&rows[i]))
	}
	columns := make([]column, len(d.Policies))
	for p, policy := range d.Policies {
		columns[p].add(strings.ToUpper(policy))
		for i := range rows {
			columns[p].add(cell(&rows[i], policy))
		}
	}
	var verdict column
	switch len(d.Policies) {
	case 0, 1:
	case 2:
		verdict.add("DIFFERENCE")
	default:
		verdict.add("")
	}
	if len(verdict.cells) > 0 {
		for i := range rows {
			verdict.add(verdictText(&rows[i], d))
		}
	}
	t.columns(&names, columns, verdict, width)
	t.legend(d)
}

// isRaw reports whether another row shows the metric in the units of reports.
func isRaw(r *Row) bool {
	d, _ := metrics.Define(r.Metric)
	return d.Raw
}

// label appends the unit to the dotted name of a time or of work. Other units are obvious.
func label(r *Row) string {
	if d, _ := metrics.Define(r.Metric); r.Unit == "s" || r.Unit == "µs" || d.Name == "wastedHours" || r.Unit == "cluster-hours" {
		return r.Metric + " (" + r.Unit + ")"
	}
	return r.Metric
}

func arrow(r *Row) string {
	if d, _ := metrics.Define(r.Metric); d.Context {
		return ""
	}
	if r.Better == metrics.Higher {
		return "↑"
	}
	return "↓"
}

func cell(r *Row, policy string) string {
	i, shown := r.Policies[policy]
	if !shown {
		return "–"
	}
	out := Number(i.Median)
	if i.Low != i.High {
		out += " [" + Number(i.Low) + ", " + Number(i.High) + "]"
	}
	if mean := r.HiddenMean(policy); mean != "" {
		out += " (" + mean + ")"
	}
	if slices.Contains(r.Best, policy) {
		out += " *"
	}
	return out
}

// verdictText returns the difference between the policies and the first one, or "no
// difference".
func verdictText(r *Row, d *Document) string {
	if definition, _ := metrics.Define(r.Metric); definition.Context {
		return ""
	}
	if len(r.Best) == 0 {
		if len(r.Against) == 0 {
			return ""
		}
		return "no difference"
	}
	if len(d.Policies) > 2 {
		return ""
	}
	return change(r, d.Policies[1])
}

// change returns the difference of the policy from the first one.
func change(r *Row, policy string) string {
	difference, ok := r.Against[policy]
	if !ok || difference.None() {
		return ""
	}
	return Signed(difference.Interval)
}

// Signed formats a difference with its sign, and with its interval if it has one.
func Signed(i statistics.Interval) string {
	sign := func(x float64) string {
		if x > 0 {
			return "+" + Number(x)
		}
		return Number(x)
	}
	if i.Low == i.High {
		return sign(i.Median)
	}
	return sign(i.Median) + " [" + sign(i.Low) + ", " + sign(i.High) + "]"
}

// columns writes as many columns side by side as fit, and the others below. The last
// column is omitted if it does not fit: the marks contain the same information.
func (t *text) columns(names *column, columns []column, last column, width int) {
	const gap = 2
	fits := func(used int) bool { return width <= 0 || used <= max(width, minWidth) }
	for from := 0; from < len(columns); {
		used, to := names.width, from
		for to < len(columns) && (to == from || fits(used+gap+columns[to].width)) {
			used += gap + columns[to].width
			to++
		}
		if from > 0 {
			t.line("")
		}
		side := slices.Clone(columns[from:to])
		if to == len(columns) && len(last.cells) > 0 && fits(used+gap+last.width) {
			side = append(side, last)
		}
		for i, name := range names.cells {
			var b strings.Builder
			pad(&b, name, names.width)
			for _, c := range side {
				b.WriteString("  ")
				pad(&b, c.cells[i], c.width)
			}
			t.line("%s", b.String())
		}
		from = to
	}
}

func pad(b *strings.Builder, s string, width int) {
	b.WriteString(s)
	for n := utf8.RuneCountInString(s); n < width; n++ {
		b.WriteByte(' ')
	}
}

func (t *text) legend(d *Document) {
	t.line("")
	if len(d.Policies) < 2 {
		t.line("↓ lower is better, ↑ higher is better.")
		return
	}
	t.line("↓ lower is better, ↑ higher is better. * no other policy is better. Rows of zeros are omitted.")
	t.line("%s", d.Sample())
}

func (t *text) decisions(d *Document, width int) {
	if len(d.Decisions) == 0 {
		if len(d.Policies) > 1 {
			t.line("")
			t.line("No decision differs.")
		}
		return
	}
	t.line("")
	t.line("FIRST DECISIONS THAT DIFFER")
	scenario := ""
	for i := range d.Decisions {
		v := &d.Decisions[i]
		if v.Scenario != scenario {
			scenario = v.Scenario
			t.line("%s, seed %d", scenario, v.Seed)
		}
		t.line("  %s: %s", v.Preemptor, v.Reason)
		for k := range v.Choices {
			t.line("    %s", shorten(v.Choices[k].String(), width-4))
			if because := v.Choices[k].Chosen; because != "" {
				t.line("      %s", shorten(because, width-6))
			}
		}
	}
}

// String returns the choice as one line.
func (c *Choice) String() string {
	switch {
	case !c.Placed:
		return c.Policy + ": not placed"
	case len(c.Victims) == 0:
		return fmt.Sprintf("%s: at %s on %s, no evictions", c.Policy, time.Duration(c.At), c.Node)
	}
	return fmt.Sprintf("%s: at %s on %s, %s %s", c.Policy, time.Duration(c.At), c.Node, c.evicts(), strings.Join(c.Victims, ", "))
}

func shorten(s string, width int) string {
	if width < minWidth-4 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
