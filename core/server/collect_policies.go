package server

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// oldPolicies are the versions of policies that are forgotten: of each policy all
// but the newest few and those that play a part. Whoever loads a version at every
// build would otherwise fill every server's disk with modules. Below 0 all are kept.
func oldPolicies(snap *state.Snapshot, keep int) (old []*model.PolicyVersion) {
	if keep < 0 {
		return nil
	}
	byName := map[string][]*model.PolicyVersion{}
	for _, v := range snap.PolicyVersions() {
		byName[v.Name] = append(byName[v.Name], v)
	}
	for name, versions := range byName {
		slices.SortFunc(versions, func(a, b *model.PolicyVersion) int {
			return cmp.Or(cmp.Compare(b.CreateIndex, a.CreateIndex), cmp.Compare(a.ID, b.ID))
		})
		st := snap.PolicyState(name)
		for _, v := range versions[min(keep, len(versions)):] {
			if st == nil || !st.Uses(v.ID) {
				old = append(old, v)
			}
		}
	}
	slices.SortFunc(old, func(a, b *model.PolicyVersion) int { return cmp.Compare(a.ID, b.ID) })
	return old
}
