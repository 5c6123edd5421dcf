package fit

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/fmath"
)

// Score ranks a node by how full it is if the free amounts remain. It returns a value in [0, 1]: binpack prefers full nodes, spread prefers empty ones.
// Free amounts may be negative; an overcommitted node ranks as the fullest.
//
// As in Nomad, only CPU and memory count: 20 - (10^freeCPU + 10^freeMem), with free
// amounts as fractions of the available ones, bounded to [0, 18] and divided by 18.
func Score(algorithm model.Algorithm, availCPU, availMem, freeCPU, freeMem int64) float64 {
	cpu, mem := fraction(freeCPU, availCPU), fraction(freeMem, availMem)
	if cpu <= 0 && mem <= 0 {
		return bounded(algorithm, 2) // neither power exceeds 1, so the bound applies
	}
	return bounded(algorithm, fmath.Exp10(cpu)+fmath.Exp10(mem))
}

// fraction returns the free fraction of a resource. If a node offers none of it, the node
// counts as full.
func fraction(free, avail int64) float64 {
	if avail <= 0 {
		return 0
	}
	return float64(free) / float64(avail)
}

// bounded turns the sum of both powers of ten into a rank.
func bounded(algorithm model.Algorithm, powers float64) float64 {
	rank := 20 - powers
	if algorithm == model.SpreadRank {
		rank = powers - 2
	}
	return min(max(rank, 0), 18) / 18
}
