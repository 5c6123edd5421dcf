package nomad_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestNomad_FusesNothing(t *testing.T) { policytest.NoFusedArithmetic(t) }
