package rules

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Relocation compares rows by where they could run if they were evicted: with free
// capacity, by evicting others, or nowhere; then by the highest priority that they would
// evict in their turn, then by the work that this would lose. It needs
// policy.RelocationColumns; without them all rows are equal.
//
// Call Load once per call of the hook.
type Relocation struct {
	where    []uint8
	priority []int32
	lostWork []int64
}

// Load sets the rows.
func (r *Relocation) Load(rows *policy.Rows) {
	r.where, r.priority, r.lostWork = rows.Relocation, rows.DisplacedPriority, rows.DisplacedLostWork
}

// Better reports whether row a can better run elsewhere than row b.
func (r *Relocation) Better(a, b int) bool {
	switch {
	case len(r.where) == 0:
		return false
	case r.where[a] != r.where[b]:
		return r.where[a] < r.where[b]
	case r.priority[a] != r.priority[b]:
		return r.priority[a] < r.priority[b]
	}
	return r.lostWork[a] < r.lostWork[b]
}

// mostRelocated is the largest number of victims that RelocationTier counts.
const mostRelocated = 1<<14 - 1

// RelocationTier returns one number for where the victims of option i could run: it rises
// with the number of those that fit nowhere else, then with the highest priority that the
// others would evict, then with the number of those that would evict. It is never negative.
func RelocationTier(in *policy.Options, i int) int64 {
	if len(in.Stranded) == 0 {
		return 0
	}
	stranded, displacing := int64(min(in.Stranded[i], mostRelocated)), int64(min(in.Displacing[i], mostRelocated))
	priority := int64(0)
	if displacing > 0 {
		priority = int64(in.DisplacedPriority[i]) - math.MinInt32 + 1
	}
	return stranded<<48 | priority<<14 | displacing
}
