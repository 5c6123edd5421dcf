package nomad_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func BenchmarkSelectVictims(b *testing.B) { policytest.BenchmarkSelectVictims(b, nomad.New()) }

func BenchmarkScoreOptions(b *testing.B) {
	for _, devices := range []bool{false, true} {
		b.Run(fmt.Sprintf("options=5000/devices=%v", devices), func(b *testing.B) {
			in, p := deviceOptions(b, 5000), nomad.New()
			if !devices {
				in.DeviceNeed, in.DeviceGroup = nil, nil
			}
			out := policytest.NewScores(in.Len())
			b.ReportAllocs()
			for b.Loop() {
				if err := p.ScoreOptions(in, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
