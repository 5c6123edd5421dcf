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

// Limits of modules that travel through the log. Until a module is loaded its
// chunks are part of the state, so they are few.
const (
	maxUploads = 8 // modules that may be on their way
	uploadIdle = int64(60 * 60 * 1e9)
)

func (a *applier) putChunk(c *replication.PutChunk) *replication.Refusal {
	if c.Digest == "" || len(c.Data) == 0 || c.Offset < 0 {
		return replication.Refuse(replication.CodeInvalid, "a chunk needs a digest, an offset and data")
	}
	if len(c.Data) > replication.MaxChunk || c.Offset+int64(len(c.Data)) > replication.MaxModule {
		return replication.Refuse(replication.CodeTooLarge, "module %s: a chunk has at most %d bytes, a module %d", c.Digest, replication.MaxChunk, replication.MaxModule)
	}
	if moduleInUse(&a.txn.View, c.Digest) {
		return nil
	}
	u := a.txn.Upload(c.Digest)
	if u == nil {
		if r := a.admitUpload(); r != nil {
			return r
		}
		u = &state.Upload{Digest: c.Digest}
	}
	kept, ok := upTo(u, c.Offset)
	switch {
	case !ok:
		return replication.Refuse(replication.CodeConflict, "module %s: a chunk at %d, and %d bytes have come in other chunks", c.Digest, c.Offset, u.Size)
	case len(kept.Chunks) < len(u.Chunks) && bytes.Equal(u.Chunks[len(kept.Chunks)], c.Data):
		return nil // it came before
	}
	a.txn.PutUpload(kept.With(a.now, c.Data))
	return nil
}

// upTo is the part of an upload before an offset: what comes again and is not
// the same replaces what follows, so that a module that came damaged can be
// sent once more. It is false where no chunk starts or ends at the offset.
func upTo(u *state.Upload, offset int64) (*state.Upload, bool) {
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

// admitUpload makes place for one more, at the cost of what nobody goes on with.
func (a *applier) admitUpload() *replication.Refusal {
	uploads := a.txn.Uploads()
	for _, u := range uploads {
		if a.now-u.Time > uploadIdle {
			a.txn.DeleteUpload(u.Digest)
		}
	}
	if len(a.txn.Uploads()) >= maxUploads {
		return replication.Refuse(replication.CodeConflict, "%d modules are on their way already: try again later", maxUploads)
	}
	return nil
}

func (a *applier) loadPolicy(c *replication.LoadPolicy) *replication.Refusal {
	v := c.Version
	kinds := []string{model.PolicyWasm, model.PolicyProcess, model.PolicyBuiltin}
	switch {
	case v.ID == "" || v.Name == "":
		return replication.Refuse(replication.CodeInvalid, "a policy version needs an id and a name")
	case !slices.Contains(kinds, v.Kind):
		return replication.Refuse(replication.CodeInvalid, "policy %s is of unknown kind %q: want one of %v", v.Name, v.Kind, kinds)
	}
	if old := a.txn.PolicyVersion(v.ID); old != nil {
		switch {
		case old.Name != v.Name:
			return replication.Refuse(replication.CodeExists, "version %s is loaded as policy %s", v.ID, old.Name)
		case sameSettings(old, v):
			return nil
		case a.playsRole(old):
			return replication.Refuse(replication.CodeConflict, "version %s of policy %s is in use with other grants, limits or signer", v.ID, v.Name)
		}
	}
	if v.Kind == model.PolicyWasm {
		if r := a.takeModule(v); r != nil {
			return r
		}
	}
	if v.Time == 0 {
		v.Time = a.now
	}
	v.Checks = nil
	a.txn.UpsertPolicyVersion(v)
	return nil
}

func sameSettings(a, b *model.PolicyVersion) bool {
	return a.Digest == b.Digest && a.Kind == b.Kind && a.Size == b.Size && bytes.Equal(a.Config, b.Config) &&
		slices.Equal(a.Grants, b.Grants) && a.OnFault == b.OnFault && a.Limits == b.Limits && a.Signer == b.Signer
}

// takeModule has the upload kept as a module, if all of it is there.
func (a *applier) takeModule(v *model.PolicyVersion) *replication.Refusal {
	u := a.txn.Upload(v.Digest)
	switch {
	case u == nil && moduleInUse(&a.txn.View, v.Digest):
		return nil
	case u == nil:
		return replication.Refuse(replication.CodeNotFound, "module %s of policy %s has not come", v.Digest, v.Name)
	case u.Size != v.Size:
		return replication.Refuse(replication.CodeInvalid, "module %s of policy %s: %d of %d bytes have come", v.Digest, v.Name, u.Size, v.Size)
	}
	sum := sha256.New()
	for _, c := range u.Chunks {
		sum.Write(c)
	}
	a.txn.DeleteUpload(u.Digest)
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != v.Digest {
		return replication.Refuse(replication.CodeInvalid, "module of policy %s: what came is %s, not %s", v.Name, got, v.Digest)
	}
	a.modules = append(a.modules, u)
	return nil
}

func (a *applier) checkPolicy(c *replication.CheckPolicy) *replication.Refusal {
	v := a.txn.PolicyVersion(c.Version)
	if v == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no policy version %s", c.Version)
	}
	a.txn.UpsertPolicyVersion(v.WithCheck(c.Server, c.Check))
	return nil
}

// playsRole is whether the version is active, previous or shadow.
func (a *applier) playsRole(v *model.PolicyVersion) bool {
	s := a.txn.PolicyState(v.Name)
	return s != nil && s.Uses(v.ID)
}

func (a *applier) forgetVersion(v *model.PolicyVersion) {
	a.txn.DeletePolicyVersion(v.ID)
	if !moduleInUse(&a.txn.View, v.Digest) && v.Kind == model.PolicyWasm {
		a.unused = append(a.unused, v.Digest)
	}
	if s := a.txn.PolicyState(v.Name); s != nil && s.Tripped[v.ID] != "" {
		next := *s
		next.Tripped = maps.Clone(s.Tripped)
		delete(next.Tripped, v.ID)
		a.storePolicyState(&next)
	}
}

// storePolicyState stores what roles are left, if any are.
func (a *applier) storePolicyState(s *model.PolicyState) {
	if s.Active == "" && s.Previous == "" && s.Shadow == "" && len(s.Tripped) == 0 {
		a.txn.DeletePolicyState(s.Name)
		return
	}
	a.txn.UpsertPolicyState(s)
}

func (a *applier) changePolicy(c *replication.ChangePolicy) *replication.Refusal {
	s, was := &model.PolicyState{Name: c.Name}, model.PolicyState{}
	if old := a.txn.PolicyState(c.Name); old != nil {
		next := *old
		next.Tripped = maps.Clone(old.Tripped)
		s, was = &next, *old
	}
	var refusal *replication.Refusal
	switch c.Op {
	case replication.OpShadow:
		refusal = a.shadow(s, c)
	case replication.OpUnshadow:
		s.Shadow = ""
	case replication.OpActivate:
		refusal = a.activate(s, c)
	case replication.OpRollback:
		refusal = rollback(s, c)
	case replication.OpTrip:
		refusal = a.trip(s, c)
	case replication.OpReset:
		refusal = reset(s, c)
	case replication.OpUnload:
		return a.unload(s, c)
	default:
		refusal = replication.Refuse(replication.CodeInvalid, "policy operation %d is not known", c.Op)
	}
	if refusal == nil {
		a.endTrial(&was, s, c)
		a.storePolicyState(s)
	}
	return refusal
}

// trialsFrom is the version of the cluster since which the state says how the last trial
// of a policy ended.
const trialsFrom = 2

// endTrial notes how a trial ended, where the command ends one.
func (a *applier) endTrial(was, s *model.PolicyState, c *replication.ChangePolicy) {
	if was.Until == 0 || s.Until != 0 && s.Active == was.Active || a.txn.Meta().Version < trialsFrom {
		return
	}
	s.LastTrial = model.Trial{Version: was.Active, Ended: trialEnd(was, s, c), Time: a.now}
}

func trialEnd(was, s *model.PolicyState, c *replication.ChangePolicy) model.TrialEnd {
	switch {
	case c.Op == replication.OpActivate && s.Active == was.Active:
		return model.TrialConfirmed
	case c.Op == replication.OpActivate:
		return model.TrialReplaced
	case c.Op == replication.OpTrip:
		return model.TrialTripped
	case c.Op == replication.OpUnload:
		return model.TrialUnloaded
	case c.Until != 0:
		return model.TrialExpired
	}
	return model.TrialRolledBack
}

// usable is the version that the command names, if it may be put to use.
func (a *applier) usable(s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	v := a.txn.PolicyVersion(c.Version)
	if v == nil || v.Name != c.Name {
		return replication.Refuse(replication.CodeNotFound, "policy %s has no version %q", c.Name, c.Version)
	}
	for _, server := range slices.Sorted(maps.Keys(v.Checks)) {
		if k := v.Checks[server]; !k.OK {
			return replication.Refuse(replication.CodeConflict, "version %s of policy %s failed on server %s: %s", v.ID, c.Name, server, k.Error)
		}
	}
	if why, tripped := s.Tripped[v.ID]; tripped {
		return replication.Refuse(replication.CodeConflict, "version %s of policy %s was taken out of service: %s; reset it first", v.ID, c.Name, why)
	}
	return nil
}

func (a *applier) shadow(s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	if r := a.usable(s, c); r != nil {
		return r
	}
	if s.Active == c.Version {
		return replication.Refuse(replication.CodeConflict, "version %s of policy %s is active: it cannot be its own shadow", c.Version, c.Name)
	}
	s.Shadow = c.Version
	return nil
}

func (a *applier) activate(s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	if r := a.usable(s, c); r != nil {
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

// rollback gives the previous version its place back. A trial may end without
// one: then the default decides.
func rollback(s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	switch {
	case c.Until != 0 && s.Until != c.Until:
		return replication.Refuse(replication.CodeConflict, "the trial of policy %s is over or was confirmed", c.Name)
	case s.Active == "" && s.Previous == "":
		return replication.Refuse(replication.CodeNotFound, "policy %s has no active version", c.Name)
	case s.Previous == "" && c.Until == 0:
		return replication.Refuse(replication.CodeConflict, "policy %s has no version to roll back to", c.Name)
	}
	if why, tripped := s.Tripped[s.Previous]; tripped && c.Until == 0 {
		return replication.Refuse(replication.CodeConflict, "version %s of policy %s was taken out of service: %s; reset it first", s.Previous, c.Name, why)
	}
	s.Active, s.Previous, s.Until = s.Previous, s.Active, 0
	return nil
}

// trip takes a version out of service: the active one where none is named.
func (a *applier) trip(s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	version := cmp.Or(c.Version, s.Active)
	if v := a.txn.PolicyVersion(version); v == nil || v.Name != c.Name {
		return replication.Refuse(replication.CodeNotFound, "policy %s has no version %q", c.Name, version)
	}
	if s.Tripped == nil {
		s.Tripped = map[string]string{}
	}
	s.Tripped[version] = cmp.Or(c.Reason, "no reason was given")
	leave(s, version)
	return nil
}

// leave takes a version out of every role. What was active before takes over
// where the version was active, unless it was taken out of service itself.
func leave(s *model.PolicyState, version string) {
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

func reset(s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	if c.Version == "" {
		s.Tripped = nil
		return nil
	}
	if _, tripped := s.Tripped[c.Version]; !tripped {
		return replication.Refuse(replication.CodeNotFound, "version %q of policy %s was not taken out of service", c.Version, c.Name)
	}
	delete(s.Tripped, c.Version)
	return nil
}

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
		leave(s, v.ID)
		a.endTrial(&was, s, c)
		a.storePolicyState(s)
	}
	a.forgetVersion(v)
	return nil
}
