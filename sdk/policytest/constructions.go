package policytest

import (
	"strconv"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// ConstructionA returns n candidates on one full node, the case on which Nomad was
// measured. The request is 500 cpu, 1024 memory and 1000 disk. If half is set, it is
// half of the resources of all candidates.
func ConstructionA(n int, half bool) *Case {
	c := newConstruction(1000)
	o := Option{Free: make([]float64, 3)}
	sum := make([]float64, 3)
	for i := range n {
		use := []float64{float64(50 + 10*(i%11)), float64(128 + 32*(i%9)), float64(150 + 50*(i%7))}
		for d := range sum {
			sum[d] += use[d]
		}
		o.Rows = append(o.Rows, Row{Name: strconv.Itoa(i), Priority: int32(20 + 5*(i%7)), Use: use, EvictionLimit: 1, LostWork: lostWork(i)})
	}
	if half {
		for d := range sum {
			c.Preemptor.Ask[d] = sum[d] / 2
		}
	}
	c.Options = []Option{o}
	return c
}

// ConstructionB returns a placement on a full cluster: ten allocations per node, two
// of which have to be evicted. If uneven is set, the allocations differ, so that
// branches are hard to predict.
func ConstructionB(nodes int, uneven bool) *Case {
	c := newConstruction(300)
	for i := range nodes {
		o := Option{Free: []float64{0, 36, 95304}}
		for k := range 10 {
			use := []float64{390, 790, 300}
			if uneven {
				use[0] += float64((i*7 + k*13) % 23)
				use[1] -= float64((i*17 + k*5) % 29)
			}
			o.Rows = append(o.Rows, Row{Priority: int32(20 + 5*(k%7)), Use: use, EvictionLimit: 1, LostWork: lostWork(10*i + k)})
		}
		c.Options = append(c.Options, o)
	}
	return c
}

// lostWork returns up to an hour, uncorrelated between neighbouring rows.
func lostWork(i int) int64 { return int64(i*2477%3600) * 1e9 }

func newConstruction(disk float64) *Case {
	return &Case{
		Dims:      []string{"cpu", "memory", "disk"},
		Preemptor: policy.Preemptor{Priority: 90, Delta: 10, JobType: "service", Namespace: "default", Ask: []float64{500, 1024, disk}},
	}
}
