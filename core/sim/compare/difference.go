package compare

import "github.com/cede-scheduler/cede/core/sim/statistics"

// Difference returns policy p minus policy q in a metric, over the pairs that contain
// both. It returns false if there are no such pairs.
func (d *Document) Difference(metric, p, q string) (statistics.Difference, bool) {
	t := newTable(d.Runs)
	a, b := t.paired(metric, position(&t.policies, p), position(&t.policies, q))
	if len(a) == 0 {
		return statistics.Difference{}, false
	}
	difference := statistics.Paired(a, b, seed)
	difference.Interval = rounded(difference.Interval)
	return difference, true
}
