package fsm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// Limits of uploads. A module is part of the state until it is loaded.
const (
	maxUploads = 8                    // concurrent uploads
	uploadIdle = int64(60 * 60 * 1e9) // ns without a chunk before an upload may be dropped
)

// putChunk appends a chunk to an upload. A chunk that was received before, or whose
// module is loaded, has no effect. An upload is part of the state until the module is
// loaded, so that every server has it.
func (a *applier) putChunk(c *replication.PutChunk) *replication.Refusal {
	if c.Digest == "" || len(c.Data) == 0 || c.Offset < 0 {
		return replication.Refuse(replication.CodeInvalid, "chunk: digest, offset and data are required")
	}
	limit := int64(replication.MaxModule)
	if replication.IsSnapshotDigest(c.Digest) && a.txn.Meta().Version >= restoreFrom {
		limit = replication.MaxRestore
	}
	if len(c.Data) > replication.MaxChunk || c.Offset+int64(len(c.Data)) > limit {
		return replication.Refuse(replication.CodeTooLarge, "module %s is too large: the limits are %d bytes for a chunk and %d for a module", c.Digest, replication.MaxChunk, limit)
	}
	if moduleInUse(&a.txn.View, c.Digest) {
		return nil
	}
	u := a.txn.Upload(c.Digest)
	if u == nil {
		if replication.IsSnapshotDigest(c.Digest) {
			dropSnapshotUploads(a.txn.UploadWriter())
		}
		if r := admitUpload(a.txn.UploadWriter(), a.now); r != nil {
			return r
		}
		u = &state.Upload{Digest: c.Digest}
	}
	kept, ok := truncated(u, c.Offset)
	switch {
	case !ok:
		return replication.Refuse(replication.CodeConflict, "module %s: no chunk starts at %d; %d bytes were received", c.Digest, c.Offset, u.Size)
	case len(kept.Chunks) < len(u.Chunks) && bytes.Equal(u.Chunks[len(kept.Chunks)], c.Data):
		return nil // a repetition
	}
	a.txn.UploadWriter().Put(kept.With(a.now, c.Data))
	return nil
}

// truncated returns the part of an upload before an offset, and false if no chunk ends
// there. A chunk that is sent again with other bytes replaces the chunks after it, so
// that a damaged upload can be repeated. It does not change u, which snapshots share.
func truncated(u *state.Upload, offset int64) (*state.Upload, bool) {
	kept := &state.Upload{Digest: u.Digest, Time: u.Time}
	for i, c := range u.Chunks {
		if kept.Size >= offset {
			break
		}
		kept.Size += int64(len(c))
		kept.Chunks = u.Chunks[: i+1 : i+1]
	}
	return kept, kept.Size == offset
}

// admitUpload refuses another upload if there are too many. Idle uploads are dropped.
// The bound limits the size of the state, since uploads are part of it.
func admitUpload(uploads state.UploadWriter, now int64) *replication.Refusal {
	for _, u := range uploads.Uploads() {
		if now-u.Time > uploadIdle {
			uploads.Delete(u.Digest)
		}
	}
	if len(uploads.Uploads()) >= maxUploads {
		return replication.Refuse(replication.CodeConflict, "%d modules are being uploaded: try again later", maxUploads)
	}
	return nil
}

// loadPolicy stores a version after its module was uploaded. Loading it again has no
// effect; its settings may be replaced only while it is not in use. Results of tests
// are cleared: they belong to the settings with which the version was tested.
func (a *applier) loadPolicy(c *replication.LoadPolicy) *replication.Refusal {
	v := c.Version
	kinds := []string{model.PolicyWasm, model.PolicyProcess, model.PolicyBuiltin, model.PolicyComposition}
	switch {
	case v.ID == "" || v.Name == "":
		return replication.Refuse(replication.CodeInvalid, "policy version: ID and name are required")
	case !slices.Contains(kinds, v.Kind):
		return replication.Refuse(replication.CodeInvalid, "policy %s: unknown kind %q, want one of %v", v.Name, v.Kind, kinds)
	}
	if old := a.txn.PolicyVersion(v.ID); old != nil {
		switch {
		case old.Name != v.Name:
			return replication.Refuse(replication.CodeExists, "version %s is already loaded as policy %s", v.ID, old.Name)
		case sameSettings(old, v):
			return nil
		case isInUse(&a.txn.View, old):
			return replication.Refuse(replication.CodeConflict, "version %s of policy %s is in use with other grants, limits or signer", v.ID, v.Name)
		}
	}
	if v.HasModule() {
		if r := a.completeUpload(v); r != nil {
			return r
		}
	}
	v.Time = cmp.Or(v.Time, a.now)
	v.Checks = nil
	a.txn.PolicyWriter().UpsertVersion(v)
	return nil
}

// sameSettings reports whether two versions differ in neither module nor settings.
// Results of tests and the time of loading do not count.
func sameSettings(a, b *model.PolicyVersion) bool {
	return a.Digest == b.Digest && a.Kind == b.Kind && a.Size == b.Size && bytes.Equal(a.Config, b.Config) &&
		slices.Equal(a.Grants, b.Grants) && a.OnFault == b.OnFault && a.Limits == b.Limits && a.Signer == b.Signer
}

// completeUpload removes a module from the state, and schedules it to be stored on this
// server. It refuses an upload that is incomplete or does not match its digest. The
// digest is computed from the state, so that every server comes to the same result. The
// upload is deleted from the state even if the digest differs, but the refusal then
// aborts the transaction, and the upload remains.
func (a *applier) completeUpload(v *model.PolicyVersion) *replication.Refusal {
	u := a.txn.Upload(v.Digest)
	switch {
	case u == nil && moduleInUse(&a.txn.View, v.Digest):
		return nil
	case u == nil:
		return replication.Refuse(replication.CodeNotFound, "module %s of policy %s was not uploaded", v.Digest, v.Name)
	case u.Size != v.Size:
		return replication.Refuse(replication.CodeInvalid, "module %s of policy %s is incomplete: %d of %d bytes were uploaded", v.Digest, v.Name, u.Size, v.Size)
	}
	sum := sha256.New()
	for _, c := range u.Chunks {
		sum.Write(c)
	}
	a.txn.UploadWriter().Delete(u.Digest)
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != v.Digest {
		return replication.Refuse(replication.CodeInvalid, "module of policy %s: digest mismatch: uploaded %s, want %s", v.Name, got, v.Digest)
	}
	a.modules = append(a.modules, u)
	return nil
}

// checkPolicy records the result of a server's test of a version. Checks of several
// servers are kept side by side.
func checkPolicy(policies state.PolicyWriter, c *replication.CheckPolicy) *replication.Refusal {
	v := policies.PolicyVersion(c.Version)
	if v == nil {
		return replication.Refuse(replication.CodeNotFound, "policy version %s not found", c.Version)
	}
	policies.UpsertVersion(v.WithCheck(c.Server, c.Check))
	return nil
}

// isInUse reports whether a version is active, previous or shadow. Such a version may
// decide at any moment, so its settings must not change.
func isInUse(view *state.View, v *model.PolicyVersion) bool {
	s := view.PolicyState(v.Name)
	return s != nil && s.Uses(v.ID)
}

// deleteVersion deletes a version, and schedules its module for deletion if no other
// version uses it. It also forgets why its calls were stopped.
func (a *applier) deleteVersion(v *model.PolicyVersion) {
	a.txn.PolicyWriter().DeleteVersion(v.ID)
	if !moduleInUse(&a.txn.View, v.Digest) && v.HasModule() {
		a.unused = append(a.unused, v.Digest)
	}
	if s := a.txn.PolicyState(v.Name); s != nil && s.Tripped[v.ID] != "" {
		next := *s
		next.Tripped = maps.Clone(s.Tripped)
		delete(next.Tripped, v.ID)
		storePolicyState(a.txn.PolicyWriter(), &next)
	}
}

// storePolicyState stores the roles of a policy, or deletes them if none is left.
func storePolicyState(policies state.PolicyWriter, s *model.PolicyState) {
	if s.Active == "" && s.Previous == "" && s.Shadow == "" && len(s.Tripped) == 0 {
		policies.DeleteState(s.Name)
		policies.DeleteTrial(s.Name)
		return
	}
	policies.UpsertState(s)
}

// changePolicy changes the role of a version. It works on a copy of the policy's state, which
// is stored unless the operation is refused.
func (a *applier) changePolicy(c *replication.ChangePolicy) *replication.Refusal {
	s, was := &model.PolicyState{Name: c.Name}, model.PolicyState{}
	if old := a.txn.PolicyState(c.Name); old != nil {
		next := *old
		next.Tripped = maps.Clone(old.Tripped)
		s, was = &next, *old
	}
	running := a.txn.PolicyTrial(c.Name)
	refusal := checkTrial(running, c)
	if refusal != nil {
		return refusal
	}
	restoreRoles(running, s, c.Op)
	switch c.Op {
	case replication.OpShadow:
		refusal = shadow(a.txn, s, c)
	case replication.OpUnshadow:
		s.Shadow = ""
	case replication.OpActivate:
		refusal = activate(&a.txn.View, s, c)
	case replication.OpRollback:
		refusal = rollback(s, c)
	case replication.OpTrip:
		refusal = trip(&a.txn.View, s, c)
	case replication.OpReset:
		refusal = reset(s, c)
	case replication.OpUnload:
		return a.unload(s, c)
	case replication.OpTrial, replication.OpBlock:
		refusal = changeBlocks(a.txn, a.now, s, c)
	default:
		refusal = replication.Refuse(replication.CodeInvalid, "unknown policy operation %d", c.Op)
	}
	if refusal == nil {
		a.recordTrialEnd(&was, s, c)
		endTrial(a.txn, s)
		storePolicyState(a.txn.PolicyWriter(), s)
	}
	return refusal
}

// trialsFrom is the first cluster version that records how the last trial of a
// policy ended.
const trialsFrom = 2

// recordTrialEnd records how a trial ended, if the command ended one. A trial is
// running while Until is set. An activation that extends it ends nothing.
func (a *applier) recordTrialEnd(was, s *model.PolicyState, c *replication.ChangePolicy) {
	version, blocks := was.Active, false
	if t := a.txn.PolicyTrial(s.Name); t.Running() {
		version, blocks = t.Candidate, true
	}
	if was.Until == 0 || s.Until != 0 && (blocks || s.Active == was.Active) || a.txn.Meta().Version < trialsFrom {
		return
	}
	s.LastTrial = model.Trial{Version: version, Ended: trialEnd(version, s, c), Time: a.now, Actor: c.Actor}
	if c.Actor == model.TrialActor {
		s.LastTrial.Reason = c.Reason
	}
}

// trialEnd returns how the trial of a version ended, given the state after the command. A
// rollback with a time is that of the leader's timer; one without is an operator's. A
// verdict has a reason.
func trialEnd(version string, s *model.PolicyState, c *replication.ChangePolicy) model.TrialEnd {
	isVerdict := c.Actor == model.TrialActor && c.Reason != ""
	switch {
	case c.Op == replication.OpActivate && s.Active == version && isVerdict:
		return model.TrialPromoted
	case c.Op == replication.OpRollback && isVerdict:
		return model.TrialStopped
	case c.Op == replication.OpActivate && s.Active == version:
		return model.TrialConfirmed
	case c.Op == replication.OpActivate:
		return model.TrialReplaced
	case c.Op == replication.OpTrip && s.Tripped[version] != "":
		return model.TrialTripped
	case c.Op == replication.OpTrip:
		return model.TrialReplaced // the version that it was compared with is gone
	case c.Op == replication.OpUnload:
		return model.TrialUnloaded
	case c.Until != 0:
		return model.TrialExpired
	}
	return model.TrialRolledBack
}

// checkUsable refuses a version that does not exist, failed on a server, or is tripped.
// A server that has not tested the version yet does not prevent its use.
func checkUsable(view *state.View, s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	v := view.PolicyVersion(c.Version)
	if v == nil || v.Name != c.Name {
		return replication.Refuse(replication.CodeNotFound, "policy %s has no version %q", c.Name, c.Version)
	}
	for _, server := range slices.Sorted(maps.Keys(v.Checks)) {
		if k := v.Checks[server]; !k.OK {
			return replication.Refuse(replication.CodeConflict, "version %s of policy %s failed on server %s: %s", v.ID, c.Name, server, k.Error)
		}
	}
	if why, tripped := s.Tripped[v.ID]; tripped {
		return replication.Refuse(replication.CodeConflict, "version %s of policy %s is tripped: %s; reset it first", v.ID, c.Name, why)
	}
	return nil
}

// shadow makes a version the shadow of the active one. It replaces an earlier shadow.
func shadow(txn *state.Txn, s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	if r := checkUsable(&txn.View, s, c); r != nil {
		return r
	}
	if s.Active == c.Version {
		return replication.Refuse(replication.CodeConflict, "version %s of policy %s is active: it cannot be its own shadow", c.Version, c.Name)
	}
	if s.Shadow != c.Version {
		resetShadow(txn.PolicyWriter(), c.Version)
	}
	s.Shadow = c.Version
	return nil
}

// activate makes a version the active one, for a trial if the command has a time.
// Activating the active version confirms its trial, or extends it. The version that was
// active becomes the previous one, the target of a rollback.
func activate(view *state.View, s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	if r := checkUsable(view, s, c); r != nil {
		return r
	}
	if s.Active != c.Version {
		s.Previous, s.Active = s.Active, c.Version
	}
	s.Until = c.Until
	if s.Shadow == c.Version {
		s.Shadow = ""
	}
	return nil
}

// rollback activates the previous version. If a trial ends and there is none, the
// default policy decides. The time in the command identifies the trial that it ends, so
// that a late timer does not end another one.
func rollback(s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	switch {
	case c.Until != 0 && s.Until != c.Until:
		return replication.Refuse(replication.CodeConflict, "the trial of policy %s has ended or was confirmed", c.Name)
	case s.Active == "" && s.Previous == "":
		return replication.Refuse(replication.CodeNotFound, "policy %q has no active version", c.Name)
	case s.Previous == "" && c.Until == 0:
		return replication.Refuse(replication.CodeConflict, "policy %s has no version to roll back to", c.Name)
	}
	if why, tripped := s.Tripped[s.Previous]; tripped && c.Until == 0 {
		return replication.Refuse(replication.CodeConflict, "version %s of policy %s is tripped: %s; reset it first", s.Previous, c.Name, why)
	}
	s.Active, s.Previous, s.Until = s.Previous, s.Active, 0
	return nil
}

// trip disables a version: the active one if the command has none. Every server stops
// calling it when this entry is applied, whichever of them found the fault.
func trip(view *state.View, s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	version := cmp.Or(c.Version, s.Active)
	if v := view.PolicyVersion(version); v == nil || v.Name != c.Name {
		return replication.Refuse(replication.CodeNotFound, "policy %s has no version %q", c.Name, version)
	}
	if s.Tripped == nil {
		s.Tripped = map[string]string{}
	}
	// The text is part of the state, and must not change.
	s.Tripped[version] = cmp.Or(c.Reason, "no reason was given")
	removeFromRoles(s, version)
	if t := view.PolicyTrial(s.Name); t.Running() && t.Concerns(version) {
		s.Until = 0
	}
	return nil
}

// removeFromRoles removes a version from every role. If it was active, the previous
// version becomes active unless it is tripped. It may leave the policy without an
// active version; the default policy decides then.
func removeFromRoles(s *model.PolicyState, version string) {
	if s.Active == version {
		s.Active, s.Previous, s.Until = s.Previous, "", 0
		if _, tripped := s.Tripped[s.Active]; tripped {
			s.Active = ""
		}
	}
	if s.Previous == version {
		s.Previous = ""
	}
	if s.Shadow == version {
		s.Shadow = ""
	}
}

// reset enables a tripped version again, or all of them.
func reset(s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	if c.Version == "" {
		s.Tripped = nil
		return nil
	}
	if _, tripped := s.Tripped[c.Version]; !tripped {
		return replication.Refuse(replication.CodeNotFound, "version %q of policy %s is not tripped", c.Version, c.Name)
	}
	delete(s.Tripped, c.Version)
	return nil
}

// unload deletes a version. If it is in use, that requires Force. Its module is deleted
// from the disk after the commit.
func (a *applier) unload(s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	v := a.txn.PolicyVersion(c.Version)
	switch {
	case v == nil || v.Name != c.Name:
		return replication.Refuse(replication.CodeNotFound, "policy %s has no version %q", c.Name, c.Version)
	case s.Uses(v.ID) && !c.Force:
		return replication.Refuse(replication.CodeConflict, "version %s of policy %s is active, previous or shadow", v.ID, c.Name)
	}
	if s.Uses(v.ID) {
		was := *s
		removeFromRoles(s, v.ID)
		if t := a.txn.PolicyTrial(s.Name); t.Running() && t.Concerns(v.ID) {
			s.Until = 0
		}
		a.recordTrialEnd(&was, s, c)
		endTrial(a.txn, s)
		storePolicyState(a.txn.PolicyWriter(), s)
	}
	a.deleteVersion(v)
	return nil
}
