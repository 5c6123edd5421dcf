package defaults

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// New returns the policy "default".
func New() policy.Policy { return rules.New() }

// NewVersion1 returns the policy "default" with version 1 of its rules.
func NewVersion1() policy.Policy { return rules.NewVersion1() }
