package rules

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Waste measures what evictions lose: the work since the last checkpoint,
// times the share of the cluster that was held, in nanoseconds of the whole
// cluster. A share is the mean over the resources of what a row holds of what
// all ready nodes offer, so units do not matter. Waste is a whole number: sums
// do not depend on their order, and there are true equals to break ties among.
//
// Load it once a call. It needs UseColumns, LostWorkColumn and TotalsColumn,
// and AnnotationColumns where it has an annotation to read.
type Waste struct {
	// Annotation is the name of a cost that operators attach to work; empty:
	// none is read. Work without it costs what was measured. A negative cost
	// counts as 0.
	Annotation string
	// Seconds is whether the annotation is the time that an eviction loses, in
	// seconds, in place of the time measured; else it multiplies it.
	Seconds bool

	share []float64
	of    []int64
}

// MaxWaste is what a row wastes at most: 52 days of the whole cluster. Two
// thousand such rows can be added up.
const MaxWaste = 1 << 52

// WasteSettings are the settings that Configure reads.
func WasteSettings() []policy.Setting {
	return []policy.Setting{
		{
			Name: "annotation", Kind: policy.Text, Default: "cost",
			Doc: "Annotation of a group that says what evicting an instance costs; empty: none is read.",
		},
		{
			Name: "annotationAs", Kind: policy.Text, Default: "factor", OneOf: []string{"factor", "seconds"},
			Doc: "What that annotation is: a factor by which the lost work is multiplied, or the seconds of work that are lost.",
		},
	}
}

// Configure reads what WasteSettings declare.
func (w *Waste) Configure(c *policy.Config) {
	w.Annotation, w.Seconds = c.Text("annotation"), c.Text("annotationAs") == "seconds"
}

// Columns are those that it reads.
func (w *Waste) Columns() policy.Columns {
	columns := policy.UseColumns | policy.LostWorkColumn | policy.TotalsColumn
	if w.Annotation != "" {
		columns |= policy.AnnotationColumns
	}
	return columns
}

// Load measures every row of a table.
func (w *Waste) Load(rows *policy.Rows, shared *policy.Shared) {
	resources := w.addShares(rows, shared)
	note := w.note(rows)
	w.of = slices.Grow(w.of[:0], rows.Len())[:rows.Len()]
	for row, share := range w.share {
		lost := float64(rows.LostWork[row])
		if note != nil {
			lost = w.priced(lost, note[row])
		}
		w.of[row] = int64(min(lost*share/resources, MaxWaste))
	}
}

// addShares adds up the shares that each row holds, and returns how many
// resources there are.
func (w *Waste) addShares(rows *policy.Rows, shared *policy.Shared) (resources float64) {
	w.share = slices.Grow(w.share[:0], rows.Len())[:rows.Len()]
	clear(w.share)
	for d, total := range shared.Totals {
		if total <= 0 {
			continue // no ready node has it: nobody can use it
		}
		resources++
		for row, use := range rows.Use[d] {
			w.share[row] += use / total
		}
	}
	return max(resources, 1)
}

// note is the column of the annotation, nil where no row has it.
func (w *Waste) note(rows *policy.Rows) []float64 {
	if w.Annotation == "" || rows.Annotations == nil {
		return nil
	}
	if k := slices.Index(rows.Annotations.Names, w.Annotation); k >= 0 {
		return rows.Annotations.Values[k]
	}
	return nil
}

// priced is the time lost as the annotation has it; NaN stands for none.
func (w *Waste) priced(lost, note float64) float64 {
	switch {
	case math.IsNaN(note):
		return lost
	case w.Seconds:
		return float64(max(note, 0) * 1e9)
	}
	return float64(max(note, 0) * lost)
}

// Of is what evicting a row wastes.
func (w *Waste) Of(row int) int64 { return w.of[row] }
