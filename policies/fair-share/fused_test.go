package fairshare_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestFairShare_FusesNothing(t *testing.T) { policytest.NoFusedArithmetic(t) }
