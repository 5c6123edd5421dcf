package preempt

import (
	"math"
	"slices"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// scoreAdaptively calls ScoreVictims again after each pick, in rounds over all options
// that do not fit yet: each round picks one row of each. Picked rows stay in place and
// are skipped, so that row numbers and columns keep their meaning; Need and Freed are
// updated. The policy is called once a round for all options together, so the number of
// calls is that of the victims of the option that needs most, not their sum.
func (w *worker) scoreAdaptively() error {
	in := &w.batch.Cand
	open := make([]bool, in.Len())
	picks := make([][]int32, in.Len())
	remaining := 0
	for o := range open {
		open[o] = !w.fitsWithout(o, nil)
		if open[o] {
			remaining++
		}
	}
	for remaining > 0 {
		if err := w.callScores(); err != nil {
			return err
		}
		for o := range open {
			if !open[o] {
				continue
			}
			row, ok := w.answers.bestRow(&w.batch.Cand, o, picks[o])
			if ok {
				picks[o] = append(picks[o], row)
				w.batch.Evict(o, row)
			}
			if !ok || w.fitsWithout(o, picks[o]) {
				open[o] = false
				remaining--
			}
		}
	}
	for o := range picks {
		if err := w.accept(o, picks[o], false); err != nil {
			return err
		}
	}
	return nil
}

// bestRow returns the row of option o to be picked next; ok is false if none is left.
// Rows are few, so a linear search of picked suffices.
func (a *answers) bestRow(in *sdk.Candidates, o int, picked []int32) (best int32, ok bool) {
	for row := in.FirstRow[o]; row < in.FirstRow[o+1]; row++ {
		if math.IsInf(a.scores.Score[row], 1) || slices.Contains(picked, row) {
			continue
		}
		if !ok || a.compareScored(row, best) < 0 {
			best, ok = row, true
		}
	}
	return best, ok
}

// fitsWithout reports whether the group fits on option o once some rows have left. It
// starts over for each call instead of removing one row, because the rows of an option
// share the verifier.
func (w *worker) fitsWithout(o int, picked []int32) bool {
	e, v := &w.batch.Entries[o], &w.verify
	v.reset(e, w.batch.DeficitOf(o, &w.s.scope.Dims))
	for _, row := range picked {
		v.check.Remove(w.batch.Rows[row], v.separationMark(e, w.batch.Rows[row]))
	}
	return v.check.Fits()
}
