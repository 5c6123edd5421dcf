package defaults

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// New returns the policy "default".
func New() policy.Policy { return rules.New() }
