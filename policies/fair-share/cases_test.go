package fairshare_test

import (
	"testing"

	fairshare "github.com/cede-scheduler/cede/policies/fair-share"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func TestCases(t *testing.T) {
	t.Parallel()
	policytest.Cases(t, policytest.Of(policytest.Configured(t, fairshare.New(), "{}")), "cases")
}
