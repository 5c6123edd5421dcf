package policymgr

import (
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
)

// versionTable holds the versions that this server has tried to open.
type versionTable struct {
	mu      sync.Mutex
	entries map[string]*versionEntry // by version ID
	closed  bool
}

// versionEntry is the result of opening a version.
type versionEntry struct {
	spec      *model.PolicyVersion // as the state had it
	opened    *policy.Version      // nil if failure is set; the table holds a reference
	failure   string               // reason for which it could not be opened
	check     model.PolicyCheck    // to be reported to the cluster
	testCalls int64                // calls that its test made
}

func newVersionTable() *versionTable { return &versionTable{entries: map[string]*versionEntry{}} }

// get returns a copy of an entry. It returns false if the version was not tried.
func (t *versionTable) get(id string) (versionEntry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[id]; e != nil {
		return *e, true
	}
	return versionEntry{}, false
}

// acquire returns an opened version with a reference that the caller must release, or
// nil.
func (t *versionTable) acquire(id string) *policy.Version {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[id]
	if e == nil || e.opened == nil || t.closed {
		return nil
	}
	e.opened.AddRef()
	return e.opened
}

// put stores the result of opening a version.
func (t *versionTable) put(v *model.PolicyVersion, opened *policy.Version, err error, now int64) {
	e := &versionEntry{spec: v, opened: opened, check: model.PolicyCheck{OK: err == nil, Time: now}}
	if err != nil {
		e.failure = err.Error()
		e.check.Error = e.failure
	} else {
		opened.AddRef()
		e.testCalls, _ = opened.Stats()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries[v.ID] = e
}

// remove removes a version, so that it is tried again.
func (t *versionTable) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(id)
}

func (t *versionTable) removeLocked(id string) {
	if e := t.entries[id]; e != nil && e.opened != nil && !t.closed {
		e.opened.ReleaseRef()
	}
	delete(t.entries, id)
}

// removeMissing removes versions that are no longer in the state, or were loaded again
// with other settings.
func (t *versionTable) removeMissing(versions []*model.PolicyVersion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, e := range t.entries {
		if !slices.ContainsFunc(versions, func(v *model.PolicyVersion) bool { return v.ID == id && sameSettings(e.spec, v) }) {
			t.removeLocked(id)
		}
	}
}

// close releases all versions.
func (t *versionTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	for _, e := range t.entries {
		if e.opened != nil {
			e.opened.ReleaseRef()
		}
	}
}

// sameSettings reports whether two loads of one version are opened alike on every
// server.
func sameSettings(a, b *model.PolicyVersion) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Grants)), slices.Sorted(slices.Values(b.Grants))) &&
		a.OnFault == b.OnFault && a.Limits == b.Limits && a.Signer == b.Signer
}
