package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func title(d *compare.Document) string {
	last := len(d.Policies) - 1
	if last < 1 {
		return "cede compare: " + strings.Join(d.Policies, "")
	}
	return "cede compare: " + strings.Join(d.Policies[:last], ", ") + " and " + d.Policies[last]
}

// lead returns the introduction of the page: which scenarios were run.
func lead(d *compare.Document) string {
	names := scenarios(d)
	subject := fmt.Sprintf("%d scenarios", len(names))
	if len(names) == 1 {
		subject = "the scenario " + names[0]
	}
	return fmt.Sprintf("Ran %s under each policy. %s", subject, d.Sample())
}

// summary is the table of metrics.
type summary struct {
	Policies []string
	Groups   []summaryGroup
	Zero     []string // metrics that are 0 in every run
}

type summaryGroup struct {
	Name string
	Rows []summaryRow
}

type summaryRow struct {
	Metric, Unit, Meaning string
	Arrow, Better         string
	Cells                 []summaryCell
	Verdict               string
}

type summaryCell struct {
	Value, Interval string
	Difference      string // from the first policy, with its interval; "": none
	Best            bool
}

// groups are the sections of the summary.
var groups = []struct {
	name  string
	first string // first metric of the group, in the order of the definitions
}{
	{"Outcome", "placed"},
	{"Preemption", "preemptions"},
	{"Cost", "wastedWork"},
	{"Delay", "queueDelay"},
	{"Capacity and fairness", "utilisation"},
	{"Distance from the best possible", "boundedDecisions"},
	{"Control plane", "decisionLatency"},
}

func newSummary(d *compare.Document) summary {
	s := summary{Policies: d.Policies}
	group := -1
	for i := range d.Summary {
		r := &d.Summary[i]
		definition, _ := metrics.Define(r.Metric)
		if definition.Raw {
			continue
		}
		if r.Zero() {
			s.Zero = append(s.Zero, r.Metric)
			continue
		}
		for next := group + 1; next < len(groups); next++ {
			if rank(groups[next].first) <= rank(definition.Name) {
				group = next
			}
		}
		if n := len(s.Groups); n == 0 || s.Groups[n-1].Name != groups[group].name {
			s.Groups = append(s.Groups, summaryGroup{Name: groups[group].name})
		}
		g := &s.Groups[len(s.Groups)-1]
		g.Rows = append(g.Rows, newSummaryRow(r, d, &definition))
	}
	return s
}

func rank(name string) int {
	return slices.IndexFunc(metrics.Definitions, func(d metrics.Definition) bool { return d.Name == name })
}

func newSummaryRow(r *compare.Row, d *compare.Document, definition *metrics.Definition) summaryRow {
	row := summaryRow{Metric: r.Metric, Unit: metrics.Unit(r.Metric), Meaning: definition.Text}
	switch {
	case definition.Context:
	case r.Better == metrics.Higher:
		row.Arrow, row.Better = "↑", "higher is better"
	default:
		row.Arrow, row.Better = "↓", "lower is better"
	}
	for _, p := range d.Policies {
		i, shown := r.Policies[p]
		c := summaryCell{Value: "–", Best: slices.Contains(r.Best, p)}
		if shown {
			c.Value = compare.Number(i.Median)
		}
		if note := r.HiddenMean(p); note != "" {
			c.Interval = note
		}
		if i.Low != i.High {
			c.Interval = compare.Number(i.Low) + " to " + compare.Number(i.High)
		}
		if !definition.Context {
			c.Difference = r.Difference(p)
		}
		row.Cells = append(row.Cells, c)
	}
	if len(d.Policies) > 1 && len(r.Best) == 0 && !definition.Context && len(r.Against) > 0 {
		row.Verdict = "no difference"
	}
	return row
}

// decisionGroup holds the differing decisions of one scenario.
type decisionGroup struct {
	Scenario string
	Policies []legend
	Rows     []decisionRow
}

type decisionRow struct {
	Preemptor, Reason string
	Choices           []decisionCell
}

type decisionCell struct {
	Place   string
	Victims []string
	More    int
	Chosen  string // why this node
}

// shownVictims limits the victims listed per choice.
const shownVictims = 6

func decisions(d *compare.Document) []decisionGroup {
	var out []decisionGroup
	for i := range d.Decisions {
		v := &d.Decisions[i]
		if n := len(out); n == 0 || out[n-1].Scenario != v.Scenario {
			g := decisionGroup{Scenario: v.Scenario}
			for _, c := range v.Choices {
				g.Policies = append(g.Policies, legend{c.Policy, series(slices.Index(d.Policies, c.Policy)), "line"})
			}
			out = append(out, g)
		}
		row := decisionRow{Preemptor: v.Preemptor, Reason: v.Reason}
		for _, c := range v.Choices {
			cell := decisionCell{Place: "not placed"}
			if c.Placed {
				cell.Place = c.Node + " at " + instant(c.At)
				shown := min(len(c.Victims), shownVictims)
				cell.Victims, cell.More, cell.Chosen = c.Victims[:shown], len(c.Victims)-shown, c.Chosen
			}
			row.Choices = append(row.Choices, cell)
		}
		g := &out[len(out)-1]
		g.Rows = append(g.Rows, row)
	}
	return out
}
