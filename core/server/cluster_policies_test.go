package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// simPolicy is the name of the policy that is loaded during faults.
const simPolicy = "mild"

// A simHost accepts any bytes as a module. Versions differ only in the order of equal
// victims.
type simHost struct{ release replication.Versions }

var _ policymgr.Host = simHost{}

const laterModules = 100

// An orderPolicy evicts the first victims of its input, or the last.
type orderPolicy struct{ last bool }

var _ sdk.VictimScorer = orderPolicy{}

func (orderPolicy) Info() sdk.Info { return sdk.Info{Name: simPolicy, Delta: 10} }

func (m orderPolicy) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	for i := range out.Score {
		out.Tier[i] = int64(in.Rows.Priority[i])
		if m.last {
			out.Score[i] = -float64(i)
		}
	}
	return nil
}

func (simHost) Builtins() []*policy.Version {
	return []*policy.Version{coretest.Version(func() sdk.Policy { return rules.New() })}
}

func (simHost) Describe(_ context.Context, r policy.LoadRequest) (*model.PolicyVersion, error) {
	sum := sha256.Sum256(r.Module)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	v, err := openOrderPolicy(digest, r.Module)
	if err != nil {
		return nil, err
	}
	return &model.PolicyVersion{
		ID: v.ID, Name: simPolicy, Digest: digest, Kind: model.PolicyWasm, Size: int64(len(r.Module)), Config: v.Config(),
	}, nil
}

// Open opens a version. Modules from laterModules on require an interface that the previous
// release lacks.
func (h simHost) Open(_ context.Context, v *model.PolicyVersion, module []byte) (*policy.Version, error) {
	if len(module) > 0 && module[0] >= laterModules && h.release == previousRelease {
		return nil, errors.New("requires interface 2, this server supports 1: upgrade it")
	}
	return openOrderPolicy(v.Digest, module)
}

func openOrderPolicy(digest string, module []byte) (*policy.Version, error) {
	if len(module) == 0 {
		return nil, fmt.Errorf("empty module")
	}
	last := module[0]%2 == 1
	return policy.NewVersion(policy.Source{
		Name: simPolicy, Module: policy.Native(digest, func() sdk.Policy { return orderPolicy{last} }),
	})
}
