package state

import "github.com/cede-scheduler/cede/core/state/internal/cow"

// aside is what scheduling does not read: one pointer in a View, so that
// snapshots stay cheap.
type aside struct {
	owner    cow.Owner
	meta     Meta
	policies named[policyVersion]
	states   named[policyState]
	uploads  named[Upload]
	tokens   named[token]
	applied  appliedKeys
}

// Meta is what the cluster says of itself.
type Meta struct {
	ClusterID string // "": it has not been named yet
	Version   uint32 // of the meaning of log entries
	// Key signs what one server hands out and another must know again. It is a
	// secret of the servers: nothing shows it.
	Key [32]byte
}

// Meta is what the cluster says of itself.
func (v *View) Meta() Meta { return v.aside.meta }

// SetMeta replaces what the cluster says of itself.
func (t *Txn) SetMeta(m Meta) {
	t.ownAside().meta = m
	t.touch(TableConfig.All())
}

func (t *Txn) ownAside() *aside {
	if t.aside.owner != t.owner {
		own := *t.aside
		own.owner = t.owner
		t.aside = &own
	}
	return t.aside
}
