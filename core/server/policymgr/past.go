package policymgr

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
)

// Past provides the policies of earlier states, to make decisions again. It is safe for
// concurrent use.
type Past struct{ m *Manager }

// NewPast returns the policies that a Manager has open.
func NewPast(m *Manager) Past { return Past{m} }

// CopyOf returns copies of the policies that were active in a state, so that calls leave no
// trace on the active set. Policies that are no longer loaded are missing. wrap is that of
// policy.Version.Copy. The caller must unpin the set.
func (p Past) CopyOf(snap *state.Snapshot, wrap func(*policy.Version, policy.Module) policy.Module) (*policy.Set, error) {
	active := p.m.active
	versions := maps.Clone(active.builtins)
	for _, s := range snap.PolicyStates() {
		if s.Active == "" {
			continue
		}
		v := active.versions.acquire(s.Active)
		if v == nil {
			delete(versions, s.Name)
			continue
		}
		defer v.ReleaseRef() // by then its copy holds a reference
		versions[s.Name] = v
	}
	set, err := policy.NewSetWithFallback(active.fallback, slices.Collect(maps.Values(versions))...)
	if err != nil {
		return nil, err
	}
	defer set.Unpin()
	return set.Copy(wrap)
}

// Module returns the module of a version, after verifying its digest.
func (p Past) Module(v *model.PolicyVersion) ([]byte, error) { return p.m.module(v) }
