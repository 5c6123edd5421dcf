package protect

import (
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// limit offers, of each group on each option, as many candidates as the group may
// still lose in this plan: those that must be evicted anyway, then the youngest,
// which lose the least. The host reports the group's victims on other nodes; an
// option cannot exceed the limit because no more candidates are offered.
func (p *Policy) limit(in *policy.Candidates, gap []int32, recheck *policy.Recheck) {
	for i := range in.Len() {
		p.limited = p.limited[:0]
		for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
			if gap[row] != policy.NeverEligible && p.mayProtect(in.Preemptor, in.Rows.Priority[row]) {
				p.limited = append(p.limited, row)
			}
		}
		slices.SortFunc(p.limited, func(a, b int32) int { return compare(&in.Rows, a, b) })
		if p.withhold(in, gap) {
			recheck.At(in.Now + p.pause)
		}
	}
}

// withhold processes the rows of an option group by group and withholds those beyond
// the group's limit. resumes reports whether another plan could continue: if this
// plan has no victim of a group yet, another plan would not be offered more.
func (p *Policy) withhold(in *policy.Candidates, gap []int32) (resumes bool) {
	left := int32(0)
	for k, row := range p.limited {
		if k == 0 || in.Rows.Group[row] != in.Rows.Group[p.limited[k-1]] {
			left = p.maxEvictions - in.Rows.Evictions[row]
		}
		if left <= 0 {
			gap[row] = policy.NeverEligible
			resumes = resumes || in.Rows.Evictions[row] > 0
		}
		left--
	}
	return resumes
}

// compare sorts rows by group, and within a group by the order in which they are offered.
func compare(rows *policy.Rows, a, b int32) int {
	if x, y := rows.Group[a], rows.Group[b]; x != y {
		return order(x < y)
	}
	if x, y := mustLeave(rows, a), mustLeave(rows, b); x != y {
		return order(x)
	}
	if x, y := rows.Start[a], rows.Start[b]; x != y {
		return order(x > y)
	}
	return order(a < b) // no two are equal
}

func mustLeave(rows *policy.Rows, row int32) bool { return rows.MustLeave[row] != 0 }

func order(first bool) int {
	if first {
		return -1
	}
	return 1
}
