package defaults_test

import (
	"testing"

	defaults "github.com/cede-scheduler/cede/policies/default"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestCases(t *testing.T) {
	t.Parallel()
	policytest.Cases(t, policytest.Of(defaults.New()), "cases")
}
