package fmath_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestFmath_NoFusedArithmetic(t *testing.T) { policytest.NoFusedArithmetic(t) }
