package composition_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/composition"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// BenchmarkComposition measures the calls about 400 nodes with ten candidates each of the gate
// of protect with the order of least-waste: as a composition, and of its two parts.
func BenchmarkComposition(b *testing.B) {
	open := func(m policy.Module) policy.Instance {
		c, err := settings.Read(m.Settings(), nil)
		if err != nil {
			b.Fatal(err)
		}
		in, err := m.Start(c)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(in.Close)
		return in
	}
	gate := policy.Native("sha256:protect", func() sdk.Policy { return protect.New() })
	order := policy.Native("sha256:least-waste", func() sdk.Policy { return leastwaste.New() })
	both, err := composition.New("both", "sha256:both", []composition.Part{protected, leastWaste}, composition.Uses{
		Eligible: []string{"protect"}, Order: []string{"least-waste"}, Option: []string{"least-waste"},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		gate, order policy.Instance
	}{
		{"parts", open(gate), open(order)},
		{"composition", open(both), nil},
	} {
		if c.order == nil {
			c.order = c.gate
		}
		b.Run(c.name, func(b *testing.B) {
			full := policytest.ConstructionB(400, true)
			full.Now = policytest.Now
			in := full.Candidates()
			gaps := make([]int32, in.Rows.Len())
			var out sdk.Selection
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := c.gate.PriorityDelta(in, gaps, new(sdk.Recheck)); err != nil {
					b.Fatal(err)
				}
				if err := c.order.SelectVictims(in, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*in.Rows.Len()), "ns/candidate")
		})
	}
}
