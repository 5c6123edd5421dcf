package coretest

import (
	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Policies returns a set of the built-in default policy and native policies.
func Policies(others ...func() sdk.Policy) *policy.Set {
	versions := []*policy.Version{Version(func() sdk.Policy { return rules.New() })}
	for _, make := range others {
		versions = append(versions, Version(make))
	}
	set, err := policy.NewSet(versions...)
	must(err)
	return set
}

// Version returns a native policy as a version with every grant.
func Version(make func() sdk.Policy) *policy.Version {
	name := make().Info().Name
	v, err := policy.NewVersion(policy.Source{
		Name: name, Grants: policy.Grants,
		Module: policy.Native(policy.BuiltinDigest(name, "test"), make),
	})
	must(err)
	return v
}
