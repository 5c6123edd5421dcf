package kubernetes_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestKubernetes_FusesNothing(t *testing.T) { policytest.NoFusedArithmetic(t) }
