package rules_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestRules_NoFusedArithmetic(t *testing.T) { policytest.NoFusedArithmetic(t) }
