package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Digest returns the digest of a scenario without its seed, which is a part of a run's
// name.
func Digest(f *scenario.File) (string, error) {
	unseeded := *f
	unseeded.Seed = 0
	h := sha256.New()
	if err := scenario.Encode(h, &unseeded, scenario.JSON); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// InputOf returns the input of all runs of a scenario under a policy. digest is that of the
// scenario; settings are those of the command line.
func InputOf(env *cmdutil.Env, players *simrun.PolicyFlags, f *simrun.ScenarioFile, policy, digest, settings string) (*Input, error) {
	v, err := players.Resolver(f.File, f.Path, policy)(sim.SpecOf(f.Policies, policy))
	if err != nil {
		return nil, &sim.PolicyError{Policy: policy, Err: err}
	}
	v.AddRef()
	defer v.ReleaseRef() // ends the process of a policy that has one
	return &Input{
		Scenario: digest, Policy: v.ID, Program: env.Build.Version,
		Settings: fmt.Sprintf("grants %v, --on-fault %s, %s", v.Grants, v.OnFault, settings),
	}, nil
}
