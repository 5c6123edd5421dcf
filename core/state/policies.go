package state

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

func versionID(v *model.PolicyVersion) string { return v.ID }
func stateName(s *model.PolicyState) string   { return s.Name }
func trialName(t *model.PolicyTrial) string   { return t.Name }

// PolicyVersions returns the policy versions, ascending by ID. The slice is shared
// and read-only.
func (v *smallTables) PolicyVersions() []*model.PolicyVersion { return v.policies }

// PolicyVersion returns the policy version with the ID, or nil if there is none.
func (v *smallTables) PolicyVersion(id string) *model.PolicyVersion {
	return v.policies.Get(id, versionID)
}

// PolicyStates returns the states of policies, ascending by name. The slice is
// shared and read-only.
func (v *smallTables) PolicyStates() []*model.PolicyState { return v.states }

// PolicyState returns the roles of the versions of a policy, or nil if none has a
// role.
func (v *smallTables) PolicyState(name string) *model.PolicyState {
	return v.states.Get(name, stateName)
}

// PolicyTrials returns the trials with blocks, in progress or the last of their policy,
// ascending by name. The slice is shared and read-only.
func (v *smallTables) PolicyTrials() []*model.PolicyTrial { return v.trials }

// PolicyTrial returns the trial of a policy, or nil if there was none.
func (v *smallTables) PolicyTrial(name string) *model.PolicyTrial {
	return v.trials.Get(name, trialName)
}

// RulesChangeIndex returns the index of the newest change of the rules of eviction:
// the roles of policies, the scheduler configuration, and the weights of namespaces.
func (v *View) RulesChangeIndex() uint64 {
	index := max(v.Config().ModifyIndex, v.WeightsChangeIndex())
	for _, p := range v.PolicyStates() {
		index = max(index, p.ModifyIndex)
	}
	return index
}

// UpsertVersion stores a policy version, or the same version with other
// checks, and sets its indexes.
func (t PolicyWriter) UpsertVersion(p *model.PolicyVersion) {
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

// AddToShadow adds comparisons to the shadow run of a version that exists. It neither
// changes the version's index nor notifies watches: servers report all the time.
func (t PolicyWriter) AddToShadow(id string, sums *model.ShadowSums) {
	next := *t.PolicyVersion(id)
	next.Shadow.Add(sums)
	a := t.ownSmall()
	a.policies = a.policies.With(&next, versionID)
}

// DeleteVersion deletes a policy version, if it exists.
func (t PolicyWriter) DeleteVersion(id string) {
	if next, found := t.policies.Without(id, versionID); found {
		t.ownSmall().policies = next
		t.touch(TablePolicies.Of(id))
	}
}

// UpsertState stores the roles of the versions of a policy, and sets its
// index.
func (t PolicyWriter) UpsertState(s *model.PolicyState) {
	if !t.restores {
		s.ModifyIndex = t.index
	}
	a := t.ownSmall()
	a.states = a.states.With(s, stateName)
	t.touch(TablePolicies.Of(s.Name))
}

// DeleteState deletes the roles of the versions of a policy.
func (t PolicyWriter) DeleteState(name string) {
	if next, found := t.states.Without(name, stateName); found {
		t.ownSmall().states = next
		t.touch(TablePolicies.Of(name))
	}
}

// UpsertTrial stores a trial, and sets its index.
func (t PolicyWriter) UpsertTrial(trial *model.PolicyTrial) {
	if !t.restores {
		trial.ModifyIndex = t.index
	}
	t.setTrial(trial)
	t.touch(TablePolicies.Of(trial.Name))
}

// AddToTrial changes the sums of the current block of a trial. It does not notify watches:
// they would run at every eviction.
func (t PolicyWriter) AddToTrial(name string, add func(*model.PolicySums)) {
	next := *t.PolicyTrial(name)
	add(&next.Current.Sums)
	t.setTrial(&next)
}

func (t PolicyWriter) setTrial(trial *model.PolicyTrial) {
	a := t.ownSmall()
	a.trials = a.trials.With(trial, trialName)
}

// DeleteTrial deletes the trial of a policy, if there is one.
func (t PolicyWriter) DeleteTrial(name string) {
	if next, found := t.trials.Without(name, trialName); found {
		t.ownSmall().trials = next
		t.touch(TablePolicies.Of(name))
	}
}

// An Upload is a policy module of which a part has been received. It is immutable.
type Upload struct {
	Digest string
	Time   int64    // Unix nanoseconds of the last chunk
	Size   int64    // bytes received so far
	Chunks [][]byte // in order; none is empty
}

func uploadDigest(u *Upload) string { return u.Digest }

// With returns the upload with one more chunk, of which it takes ownership.
func (u *Upload) With(now int64, chunk []byte) *Upload {
	return &Upload{
		Digest: u.Digest, Time: now, Size: u.Size + int64(len(chunk)),
		Chunks: append(slices.Clip(u.Chunks), chunk),
	}
}

// Uploads returns the incomplete uploads, ascending by digest. The slice is shared
// and read-only.
func (v *smallTables) Uploads() []*Upload { return v.uploads }

// Upload returns the upload with the digest, or nil if there is none.
func (v *smallTables) Upload(digest string) *Upload { return v.uploads.Get(digest, uploadDigest) }

// Put stores an upload under its digest.
func (t UploadWriter) Put(u *Upload) {
	a := t.ownSmall()
	a.uploads = a.uploads.With(u, uploadDigest)
	t.touch(TablePolicies.Of(u.Digest))
}

// Delete deletes an upload, if it exists.
func (t UploadWriter) Delete(digest string) {
	if next, found := t.uploads.Without(digest, uploadDigest); found {
		t.ownSmall().uploads = next
		t.touch(TablePolicies.Of(digest))
	}
}
