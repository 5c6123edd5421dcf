package decay_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestDecay_NoFusedArithmetic(t *testing.T) { policytest.NoFusedArithmetic(t) }
