package aging_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestAging_FusesNothing(t *testing.T) { policytest.NoFusedArithmetic(t) }
