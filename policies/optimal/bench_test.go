package optimal_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func BenchmarkSelectVictims(b *testing.B) {
	for _, by := range costs {
		b.Run("cost="+by, func(b *testing.B) {
			p := configured(b, by, 2000)
			policytest.BenchmarkSelectVictims(b, p)
			if p.Cut() > 0 {
				b.Logf("cut short on %d options", p.Cut())
			}
		})
	}
}

func BenchmarkScoreOptions(b *testing.B) {
	for _, by := range costs {
		b.Run("cost="+by, func(b *testing.B) { policytest.BenchmarkScoreOptions(b, configured(b, by, 2000)) })
	}
}
