package optimal_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestOptimal_FusesNothing(t *testing.T) { policytest.NoFusedArithmetic(t) }
