package fit

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/fmath"
)

// Score ranks a node by how full it is once free amounts are what is left, in
// [0, 1]. Binpack prefers full nodes, spread empty ones. free may be negative:
// an overfull node ranks as the fullest.
//
// Only processor and memory count, as in Nomad: 20 - (10^freeCPU + 10^freeMem)
// with free fractions of what the node offers, held in [0, 18] and divided by 18.
func Score(algorithm model.Algorithm, availCPU, availMem, freeCPU, freeMem int64) float64 {
	cpu, mem := fraction(freeCPU, availCPU), fraction(freeMem, availMem)
	if cpu <= 0 && mem <= 0 {
		return bounded(algorithm, 2) // no power of ten exceeds 1: the rank is held at its end
	}
	return bounded(algorithm, fmath.Exp10(cpu)+fmath.Exp10(mem))
}

// fraction of an offer that is free. A node that offers none of a resource is
// full in it.
func fraction(free, avail int64) float64 {
	if avail <= 0 {
		return 0
	}
	return float64(free) / float64(avail)
}

func bounded(algorithm model.Algorithm, powers float64) float64 {
	rank := 20 - powers
	if algorithm == model.SpreadRank {
		rank = powers - 2
	}
	return min(max(rank, 0), 18) / 18
}
