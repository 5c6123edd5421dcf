package karmada_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestKarmada_FusesNothing(t *testing.T) { policytest.NoFusedArithmetic(t) }
