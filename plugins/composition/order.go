package composition

import (
	"cmp"
	"math"
	"slices"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// excluded is the rank of candidates that a part excludes.
const excluded = math.MaxInt32

// keyColumn holds the answer of one part about the order of candidates: lower tiers first,
// then lower scores.
type keyColumn struct {
	tier  []int64
	score []float64 // empty: all are equal
}

// rank sets i.ranks to the order of the candidates of each option by the answers of parts:
// 0 for the first ones, equal for candidates that are equal for every part, and excluded for
// those with the score +Inf of any part.
func (i *instance) rank(in *sdk.Candidates, parts []*runningPart, recheck *sdk.Recheck) error {
	rows := in.Rows.Len()
	for len(i.keys) < len(parts) {
		i.keys = append(i.keys, keyColumn{})
	}
	for n, p := range parts {
		if err := i.keyOf(&i.keys[n], p, in, recheck); err != nil {
			return err
		}
	}
	keys := i.keys[:len(parts)]
	i.ranks = append(i.ranks[:0], make([]int32, rows)...)
	for o := range in.Len() {
		i.sorted = i.sorted[:0]
		for row := in.FirstRow[o]; row < in.FirstRow[o+1]; row++ {
			if isExcluded(keys, row) {
				i.ranks[row] = excluded
				continue
			}
			i.sorted = append(i.sorted, row)
		}
		slices.SortStableFunc(i.sorted, func(a, b int32) int { return compareKeys(keys, a, b) })
		rank := int32(0)
		for n, row := range i.sorted {
			if n > 0 && compareKeys(keys, i.sorted[n-1], row) != 0 {
				rank++
			}
			i.ranks[row] = rank
		}
	}
	return nil
}

// keyOf obtains the answer of a part. The tiers of a part that selects sets of victims are
// the priorities, because such a part is ascending.
func (i *instance) keyOf(k *keyColumn, p *runningPart, in *sdk.Candidates, recheck *sdk.Recheck) error {
	n := in.Rows.Len()
	k.tier = append(k.tier[:0], make([]int64, n)...)
	k.score = k.score[:0]
	if p.selects() {
		for row, priority := range in.Rows.Priority {
			k.tier[row] = int64(priority)
		}
		return nil
	}
	k.score = append(k.score, make([]float64, n)...)
	out := sdk.VictimScores{Tier: k.tier, Score: k.score}
	if err := i.call(p, func() error { return p.ScoreVictims(p.view(in), &out) }); err != nil {
		return err
	}
	merge(recheck, &out.Recheck)
	for row, score := range k.score {
		if math.IsNaN(score) || math.IsInf(score, -1) {
			return badAnswer(p, "invalid score %v in row %d: scores must be finite, or +Inf for never", score, row)
		}
	}
	return nil
}

func isExcluded(keys []keyColumn, row int32) bool {
	return slices.ContainsFunc(keys, func(k keyColumn) bool { return len(k.score) > 0 && math.IsInf(k.score[row], 1) })
}

func compareKeys(keys []keyColumn, a, b int32) int {
	for n := range keys {
		k := &keys[n]
		if k.tier[a] != k.tier[b] {
			return cmp.Compare(k.tier[a], k.tier[b])
		}
		if len(k.score) > 0 && k.score[a] != k.score[b] {
			return cmp.Compare(k.score[a], k.score[b])
		}
	}
	return 0
}
