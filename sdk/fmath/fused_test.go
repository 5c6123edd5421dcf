package fmath_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestFmath_FusesNothing(t *testing.T) { policytest.NoFusedArithmetic(t) }
