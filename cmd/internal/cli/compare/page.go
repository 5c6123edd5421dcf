package compare

import (
	"io"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/report"
)

func comparisonDocument(env *cmdutil.Env, d *compare.Document) cmdutil.Document {
	return cmdutil.Document{
		Data:  d,
		Names: d.Policies,
		Page: func(p cmdutil.Page) {
			if p.NoHeaders {
				medians(p, d)
				return
			}
			width := 0
			if !p.Wide {
				width = env.Columns()
			}
			_ = d.WriteTable(p.W, width) // p.W stores the error
		},
	}
}

// medians prints one line per metric, with its medians.
func medians(p cmdutil.Page, d *compare.Document) {
	t := &term.Table{Columns: []term.Column{{Title: "METRIC"}}}
	for _, policy := range d.Policies {
		t.Columns = append(t.Columns, term.Column{Title: strings.ToUpper(policy), Right: true})
	}
	for i := range d.Summary {
		row := []string{d.Summary[i].Metric}
		for _, policy := range d.Policies {
			cell := ""
			if interval, ok := d.Summary[i].Policies[policy]; ok {
				cell = compare.Number(interval.Median)
			}
			row = append(row, cell)
		}
		t.Row(row...)
	}
	p.Table(t)
}

// report writes the comparison as an HTML page with charts.
func (c *comparison) report(d *compare.Document) error {
	return c.env.Write(c.html, func(w io.Writer) error { return report.Write(w, d) })
}
