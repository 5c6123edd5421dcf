package preempt

import (
	"math"
	"slices"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// scoreAdaptively asks ScoreVictims again after each pick, in rounds over all
// options that do not fit yet: each round picks one row of each. Rows that were
// picked stay in place with the score of nobody (they are skipped), so that row
// numbers and columns keep their meaning; Need and Freed are brought up to date.
func (s *searcher) scoreAdaptively() error {
	c := &s.batch.cand
	open := make([]bool, c.Len())
	picks := make([][]int32, c.Len())
	remaining := 0
	for o := range open {
		s.trial.reset(&s.batch.places[o], &s.f.req.Group.Ask, &s.f.watch, s.batch.lacksOf(o, &s.f.watch))
		open[o] = !s.trial.fits()
		if open[o] {
			remaining++
		}
	}
	for remaining > 0 {
		if err := s.askScores(); err != nil {
			return err
		}
		for o := range open {
			if !open[o] {
				continue
			}
			row, ok := s.bestRow(o, picks[o])
			if ok {
				picks[o] = append(picks[o], row)
				s.free(o, row)
			}
			if !ok || s.fitsAfter(o, picks[o]) {
				open[o] = false
				remaining--
			}
		}
	}
	for o := range picks {
		if err := s.accept(o, picks[o], false); err != nil {
			return err
		}
	}
	return nil
}

// bestRow is the row of option o that goes next.
func (s *searcher) bestRow(o int, picked []int32) (best int32, ok bool) {
	c := &s.batch.cand
	for row := c.FirstRow[o]; row < c.FirstRow[o+1]; row++ {
		if math.IsInf(s.scores.Score[row], 1) || slices.Contains(picked, row) {
			continue
		}
		if !ok || s.compareScored(row, best) < 0 {
			best, ok = row, true
		}
	}
	return best, ok
}

// free moves what a picked row frees from Need to Freed.
func (s *searcher) free(o int, row int32) {
	c := &s.batch.cand
	for d := range c.Need {
		use := float64(s.batch.rows[row].Group.Ask.Vec[d])
		c.Need[d][o] -= use
		c.Freed[d][o] += use
	}
	for r := range c.DeviceNeed {
		c.DeviceNeed[r][o] -= c.Rows.Devices[r][row]
	}
	if s.columns.Has(sdk.MustLeaveColumn) && c.Rows.MustLeave[row] != 0 {
		c.MustLeave[o]--
	}
}

func (s *searcher) fitsAfter(o int, picked []int32) bool {
	s.trial.reset(&s.batch.places[o], &s.f.req.Group.Ask, &s.f.watch, s.batch.lacksOf(o, &s.f.watch))
	for _, row := range picked {
		s.trial.remove(s.batch.rows[row], s.marks(o, row))
	}
	return s.trial.fits()
}
