package leastwaste_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func BenchmarkSelectVictims(b *testing.B) { policytest.BenchmarkSelectVictims(b, configured(b, 0)) }

func BenchmarkScoreOptions(b *testing.B) { policytest.BenchmarkScoreOptions(b, configured(b, 0)) }
