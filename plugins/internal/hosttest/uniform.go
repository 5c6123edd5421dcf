package hosttest

import (
	"math/rand/v2"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// UniformCandidates returns candidates with the given number of options and of rows per
// option.
func UniformCandidates(options, rows int) *sdk.Candidates {
	r := rand.New(rand.NewPCG(1, 2))
	c := &policytest.Case{
		Dims:      []string{"cpu", "memory", "disk"},
		Preemptor: sdk.Preemptor{Priority: 90, Delta: 10, JobType: "service", Ask: []float64{2000, 4096, 300}},
	}
	for i := range options {
		o := policytest.Option{Node: int32(i), Free: []float64{0, 36, 95304}}
		for range rows {
			o.Rows = append(o.Rows, policytest.Row{
				Priority: int32(20 + 5*r.IntN(7)), EvictionLimit: 1,
				Use: []float64{float64(300 + r.IntN(200)), float64(700 + r.IntN(200)), 300},
			})
		}
		c.Options = append(c.Options, o)
	}
	return c.Candidates()
}
