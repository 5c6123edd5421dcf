package generate

import (
	"hash/fnv"
	"math/bits"
	"math/rand/v2"

	"github.com/cede-scheduler/cede/sdk/fmath"
)

// rng draws from one PCG stream. It replaces rand.Rand: the integers of rand.Rand differ
// between 32-bit and 64-bit machines, and its normal and exponential draws depend on
// math.Exp.
type rng struct{ pcg *rand.PCG }

// stream returns the random source of one part of the spec.
func stream(seed uint64, part string) *rng {
	h := fnv.New64a()
	_, _ = h.Write([]byte(part))
	return &rng{rand.NewPCG(seed, h.Sum64())}
}

// below returns a uniform integer from 0 to n-1. N must be at least 1.
func (r *rng) below(n int64) int64 {
	// Lemire's method: the upper half of the 128-bit product is uniform, except
	// for 2^64 mod n values of the lower half, which are rejected.
	un := uint64(n)
	hi, lo := bits.Mul64(r.pcg.Uint64(), un)
	for lo < un && lo < -un%un {
		hi, lo = bits.Mul64(r.pcg.Uint64(), un)
	}
	return int64(hi)
}

// between returns a uniform integer from lo to hi, both included.
func (r *rng) between(lo, hi int64) int64 { return lo + r.below(hi-lo+1) }

// unit returns a uniform value in [0, 1), in steps of 2^-53.
func (r *rng) unit() float64 { return float64(r.pcg.Uint64()>>11) / (1 << 53) }

// exponential returns an exponential value with mean 1.
func (r *rng) exponential() float64 { return -fmath.Log(1 - r.unit()) }

// normal returns a normal value with mean 0 and standard deviation 1, by Marsaglia's
// polar method.
func (r *rng) normal() float64 {
	for {
		u, v := 2*r.unit()-1, 2*r.unit()-1
		s := float64(u*u) + float64(v*v)
		if s > 0 && s < 1 {
			return u * fmath.Sqrt(-2*fmath.Log(s)/s)
		}
	}
}

// pick returns k of n positions in ascending order; every subset is equally likely.
func (r *rng) pick(n, k int) []int {
	var picked []int
	for i := range n {
		if r.below(int64(n-i)) < int64(k-len(picked)) {
			picked = append(picked, i)
		}
	}
	return picked
}
