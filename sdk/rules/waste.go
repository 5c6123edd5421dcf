package rules

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Waste measures the work that evictions lose: the time since the last checkpoint,
// times the share of the cluster that was held, in nanoseconds of the whole cluster.
// A share is the mean, over the resources, of the amount that a row holds divided by
// the capacity of all ready nodes, so that units cancel out. Waste is a whole number:
// sums do not depend on their order, and equal values are exactly equal.
//
// Call Load once per call of the hook. It needs UseColumns, LostWorkColumn and
// TotalsColumn, and AnnotationColumns if Annotation is set.
type Waste struct {
	// Annotation is the name of a cost that operators attach to groups; if it is
	// empty, none is read. A row without the annotation has the measured cost. A
	// negative cost counts as 0.
	Annotation string
	// Seconds defines the annotation as the time that an eviction loses, in seconds,
	// in place of the measured time. If it is false, the annotation is a factor.
	Seconds bool

	share []float64
	of    []int64
}

// MaxWaste is the upper limit of a row's waste: 52 days of the whole cluster. The sum
// of two thousand such rows does not overflow.
const MaxWaste = 1 << 52

// WasteSettings returns the settings that Configure reads.
func WasteSettings() []policy.Setting {
	return []policy.Setting{
		{
			Name: "annotation", Kind: policy.Text, Default: "cost",
			Doc: "Annotation of a group that holds the cost of evicting an instance; empty: none is read.",
		},
		{
			Name: "annotationAs", Kind: policy.Text, Default: "factor", OneOf: []string{"factor", "seconds"},
			Doc: "Meaning of the annotation: a factor by which lost work is multiplied, or the seconds of work that are lost.",
		},
	}
}

// Configure reads the settings that WasteSettings declares.
func (w *Waste) Configure(c *policy.Config) {
	w.Annotation, w.Seconds = c.Text("annotation"), c.Text("annotationAs") == "seconds"
}

// Columns returns the columns that Load reads.
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
	note := w.annotation(rows)
	w.of = slices.Grow(w.of[:0], rows.Len())[:rows.Len()]
	for row, share := range w.share {
		lost := float64(rows.LostWork[row])
		if note != nil {
			lost = w.cost(lost, note[row])
		}
		w.of[row] = int64(min(lost*share/resources, MaxWaste))
	}
}

// addShares sums the shares that each row holds and returns the number of resources.
func (w *Waste) addShares(rows *policy.Rows, shared *policy.Shared) (resources float64) {
	w.share = slices.Grow(w.share[:0], rows.Len())[:rows.Len()]
	clear(w.share)
	for d, total := range shared.Totals {
		if total <= 0 {
			continue // no ready node has it, so no row uses it
		}
		resources++
		for row, use := range rows.Use[d] {
			w.share[row] += use / total
		}
	}
	return max(resources, 1)
}

// annotation returns the column of the annotation, or nil if no row has it.
func (w *Waste) annotation(rows *policy.Rows) []float64 {
	if w.Annotation == "" || rows.Annotations == nil {
		return nil
	}
	if k := slices.Index(rows.Annotations.Names, w.Annotation); k >= 0 {
		return rows.Annotations.Values[k]
	}
	return nil
}

// cost returns the lost time by the annotation. NaN means that a row has none.
func (w *Waste) cost(lost, note float64) float64 {
	switch {
	case math.IsNaN(note):
		return lost
	case w.Seconds:
		return float64(max(note, 0) * 1e9)
	}
	return float64(max(note, 0) * lost)
}

// Of returns the waste of evicting a row.
func (w *Waste) Of(row int) int64 { return w.of[row] }
