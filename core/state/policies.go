package state

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

func versionID(v *model.PolicyVersion) string { return v.ID }
func stateName(s *model.PolicyState) string   { return s.Name }

// PolicyVersions is the policy versions, ascending by id. It is shared and
// read-only.
func (v *View) PolicyVersions() []*model.PolicyVersion { return v.small.policies }

// PolicyVersion is the policy version with this id; nil when there is none.
func (v *View) PolicyVersion(id string) *model.PolicyVersion {
	return v.small.policies.Get(id, versionID)
}

// PolicyStates is what role versions play, ascending by the policy's name. It
// is shared and read-only.
func (v *View) PolicyStates() []*model.PolicyState { return v.small.states }

// PolicyState is what role the versions of a policy play; nil when none plays
// any.
func (v *View) PolicyState(name string) *model.PolicyState {
	return v.small.states.Get(name, stateName)
}

// RulesChangeIndex is the index of the newest change of what decides who may be evicted: the
// roles of policies, and the scheduler's configuration.
func (v *View) RulesChangeIndex() uint64 {
	index := v.Config().ModifyIndex
	for _, p := range v.PolicyStates() {
		index = max(index, p.ModifyIndex)
	}
	return index
}

// UpsertPolicyVersion stores a policy version, or the same with other checks,
// and sets its indexes.
func (t *Txn) UpsertPolicyVersion(p *model.PolicyVersion) {
	created := uint64(0)
	if old := t.PolicyVersion(p.ID); old != nil {
		if old == p {
			panic("state: policy version " + p.ID + " written again without a copy")
		}
		created = old.CreateIndex
	}
	t.stamp(&p.CreateIndex, &p.ModifyIndex, created)
	a := t.ownSmall()
	a.policies = a.policies.With(p, versionID)
	t.touch(TablePolicies.Of(p.ID))
}

// DeletePolicyVersion forgets a policy version, if it is there.
func (t *Txn) DeletePolicyVersion(id string) {
	if next, found := t.small.policies.Without(id, versionID); found {
		t.ownSmall().policies = next
		t.touch(TablePolicies.Of(id))
	}
}

// UpsertPolicyState stores what role the versions of a policy play, and sets
// its index.
func (t *Txn) UpsertPolicyState(s *model.PolicyState) {
	if !t.restores {
		s.ModifyIndex = t.index
	}
	a := t.ownSmall()
	a.states = a.states.With(s, stateName)
	t.touch(TablePolicies.Of(s.Name))
}

// DeletePolicyState forgets what role the versions of a policy play.
func (t *Txn) DeletePolicyState(name string) {
	if next, found := t.small.states.Without(name, stateName); found {
		t.ownSmall().states = next
		t.touch(TablePolicies.Of(name))
	}
}

// Upload is a policy module that is on its way. It is immutable.
type Upload struct {
	Digest string
	Time   int64    // Unix nanoseconds of the last chunk
	Size   int64    // bytes that have come
	Chunks [][]byte // in order; none is empty
}

func uploadDigest(u *Upload) string { return u.Digest }

// With is the upload with one more chunk, which belongs to it from here on.
func (u *Upload) With(now int64, chunk []byte) *Upload {
	return &Upload{
		Digest: u.Digest, Time: now, Size: u.Size + int64(len(chunk)),
		Chunks: append(slices.Clip(u.Chunks), chunk),
	}
}

// Uploads is the modules that are on their way, ascending by digest. It is
// shared and read-only.
func (v *View) Uploads() []*Upload { return v.small.uploads }

// Upload is the module that is on its way under a digest; nil when none is.
func (v *View) Upload(digest string) *Upload { return v.small.uploads.Get(digest, uploadDigest) }

// PutUpload stores a module that is on its way, under its digest.
func (t *Txn) PutUpload(u *Upload) {
	a := t.ownSmall()
	a.uploads = a.uploads.With(u, uploadDigest)
	t.touch(TablePolicies.Of(u.Digest))
}

// DeleteUpload forgets a module that is on its way.
func (t *Txn) DeleteUpload(digest string) {
	if next, found := t.small.uploads.Without(digest, uploadDigest); found {
		t.ownSmall().uploads = next
		t.touch(TablePolicies.Of(digest))
	}
}
