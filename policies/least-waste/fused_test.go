package leastwaste_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestLeastWaste_FusesNothing(t *testing.T) { policytest.NoFusedArithmetic(t) }
