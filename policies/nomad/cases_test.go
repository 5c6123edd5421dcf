package nomad_test

import (
	"testing"

	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestCases(t *testing.T) {
	t.Parallel()
	policytest.Cases(t, policytest.Of(nomad.New()), "cases")
}
