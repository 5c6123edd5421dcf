package report

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/compare"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// page holds the data of the template.
type page struct {
	Preface
	Program   string
	Policies  []legend
	Summary   summary
	Scenarios []section
	Scatter   *figure
	Bounds    []compare.Bounds
	Decisions []decisionGroup
	Source    []Fact
}

// A Preface precedes the summary of a comparison, for a command whose result is more than
// the comparison.
type Preface struct {
	Title        string
	Lead         []string // paragraphs
	Tables       []Table
	SummaryTitle string // of the summary of the comparison
}

// Fact is a line of the last section: how to repeat the comparison.
type Fact struct{ Name, Value string }

// section holds the figures of one scenario.
type section struct {
	Name    string
	Note    string
	Figures []*figure
}

// Write writes the page of a comparison. It returns the first error of w.
func Write(w io.Writer, d *compare.Document) error {
	return WriteAfter(w, Preface{Title: title(d), Lead: []string{lead(d)}, SummaryTitle: "Summary"}, "cede compare", d)
}

// WriteAfter writes the page of a comparison that belongs to another command, after the
// tables of a preface.
func WriteAfter(w io.Writer, before Preface, program string, d *compare.Document) error {
	p := page{
		Preface: before, Program: program, Summary: newSummary(d), Scatter: scatter(d), Bounds: d.Bounds, Decisions: decisions(d), Source: source(d),
	}
	for i, policy := range d.Policies {
		p.Policies = append(p.Policies, legend{policy, series(i), ""})
	}
	for _, name := range scenarios(d) {
		p.Scenarios = append(p.Scenarios, newSection(d, name))
	}
	return pageTemplate.Execute(w, &p)
}

// source lists what is required to repeat the comparison; nothing if it is unknown.
func source(d *compare.Document) []Fact {
	list := Source(&d.Provenance, d.Policies)
	if list == nil {
		return nil
	}
	var seeds []string
	for i := range d.Runs {
		if seed := strconv.FormatUint(d.Runs[i].Seed, 10); !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
	}
	return append(list, Fact{"seeds", strings.Join(seeds, ", ")})
}

// Source lists the command, the program and the policies of a page; nothing if the
// provenance is empty.
func Source(p *compare.Provenance, policies []string) []Fact {
	if p.Command == "" {
		return nil
	}
	list := []Fact{{"command", p.Command}, {"cede", p.Program}}
	for _, name := range policies {
		list = append(list, Fact{"policy " + name, p.Versions[name]})
	}
	return list
}

func scenarios(d *compare.Document) []string {
	var names []string
	for i := range d.Runs {
		if !slices.Contains(names, d.Runs[i].Scenario) {
			names = append(names, d.Runs[i].Scenario)
		}
	}
	return names
}

// newSection draws the first seed of a scenario: the run in which ties are broken by
// ID, as in `cede sim run`.
func newSection(d *compare.Document, name string) section {
	runs := make([]*compare.Run, len(d.Policies)) // by policy; nil if there is no series
	seeds := 0
	for i := range d.Runs {
		r := &d.Runs[i]
		at := slices.Index(d.Policies, r.Policy)
		if r.Scenario != name {
			continue
		}
		if at == 0 {
			seeds++
		}
		if runs[at] == nil && r.Series != nil {
			runs[at] = r
		}
	}
	s := section{Name: name}
	if seeds > 1 {
		s.Note = "The figures show the first seed; the summary covers all."
	}
	for _, draw := range []func(drawn) *figure{delays, evictions, waste, utilisation, fragmentation, heatmap} {
		if f := draw(drawn{d.Policies, runs}); f != nil {
			s.Figures = append(s.Figures, f)
		}
	}
	return s
}

// drawn holds one run per policy.
type drawn struct {
	policies []string
	runs     []*compare.Run
}

// item is a policy with a run to draw.
type item struct {
	at     int // among the policies
	policy string
	run    *compare.Run
}

func (d drawn) items() []item {
	var items []item
	for i, r := range d.runs {
		if r != nil {
			items = append(items, item{i, d.policies[i], r})
		}
	}
	return items
}

// end returns the latest end of the runs, in seconds.
func (d drawn) end() float64 {
	end := 0.0
	for _, r := range d.runs {
		if r != nil {
			end = max(end, r.Series.End)
		}
	}
	return end
}
