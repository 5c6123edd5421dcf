package optimal_test

import (
	"testing"

	"github.com/cede-scheduler/cede/policies/optimal"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestCases(t *testing.T) {
	t.Parallel()
	policytest.Cases(t, policytest.Of(policytest.Configured(t, optimal.New(), "{}")), "cases")
}
