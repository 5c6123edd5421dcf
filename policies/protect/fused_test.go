package protect_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestProtect_FusesNothing(t *testing.T) { policytest.NoFusedArithmetic(t) }
