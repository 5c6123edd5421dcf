package preempt

import (
	"cmp"
	"slices"
)

// EachRanked visits every option, the best first, until visit returns false. Best is
// the first of them. What is visited must be copied to be kept.
func (f *Finder) EachRanked(visit func(Choice) bool) error {
	f.searchOn(true)
	if err := f.scoreOptions(); err != nil {
		return err
	}
	t := &f.table
	order := make([]int, len(t.at))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case t.better(a, b):
			return -1
		case t.better(b, a):
			return 1
		}
		return cmp.Compare(a, b)
	})
	for _, i := range order {
		if !visit(f.choice(i)) {
			return nil
		}
	}
	return nil
}
