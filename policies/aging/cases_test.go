package aging_test

import (
	"testing"

	"github.com/cede-scheduler/cede/policies/aging"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestCases(t *testing.T) {
	t.Parallel()
	policytest.Cases(t, policytest.Of(policytest.Configured(t, aging.New(), "{}")), "cases")
}
