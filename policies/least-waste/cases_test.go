package leastwaste_test

import (
	"testing"

	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestCases(t *testing.T) {
	t.Parallel()
	policytest.Cases(t, policytest.Of(policytest.Configured(t, leastwaste.New(), "{}")), "cases")
}
