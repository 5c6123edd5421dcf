package kubernetes_test

import (
	"testing"

	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func BenchmarkSelectVictims(b *testing.B) { policytest.BenchmarkSelectVictims(b, kubernetes.New()) }
