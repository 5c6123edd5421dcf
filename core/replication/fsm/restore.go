package fsm

import (
	"bytes"
	"crypto/sha256"
	"io"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
)

// restoreFrom is the first cluster version with RestoreState. A server of an older release
// refuses the chunks of a snapshot.
const restoreFrom = 2

// dropSnapshotUploads deletes uploads of other snapshots, which a caller has abandoned:
// they are large, and one restore runs at a time.
func dropSnapshotUploads(uploads state.UploadWriter) {
	for _, u := range uploads.Uploads() {
		if replication.IsSnapshotDigest(u.Digest) {
			uploads.Delete(u.Digest)
		}
	}
}

// restoreState selects the uploaded snapshot that replaces the state.
func restoreState(a *applier, c *replication.RestoreState) *replication.Refusal {
	u := a.txn.Upload(c.Digest)
	if u == nil || !replication.IsSnapshotDigest(c.Digest) {
		return replication.Refuse(replication.CodeNotFound, "snapshot %s was not uploaded", c.Digest)
	}
	sum := sha256.New()
	for _, chunk := range u.Chunks {
		_, _ = sum.Write(chunk) // a hash does not fail
	}
	if replication.SnapshotDigest([32]byte(sum.Sum(nil))) != c.Digest {
		return replication.Refuse(replication.CodeConflict, "snapshot %s is incomplete: %d bytes were received", c.Digest, u.Size)
	}
	a.restore = u
	return nil
}

// replaceState replaces the state by the snapshot that the entry at a log index selected.
// The entry is committed like any other: every server replaces its state at this index, also
// one that applies the log later, and a new leader has the entry or the restore did not
// happen.
//
// The snapshot may be of another cluster, with later indexes than those of this log. The
// state then continues behind them: no ModifyIndex may be used twice.
//
// The leader has verified the snapshot. An error means that this server cannot read what
// another one can, or cannot store a module: it must halt.
func (f *FSM) replaceState(a *applier, logIndex uint64) (replication.Applied, error) {
	before, index := f.store.Snapshot(), a.txn.Index()
	a.txn.Abort()
	r := snapshot.Restorer{Modules: f.modules.storeWhole, Begin: func(last uint64) *state.Txn {
		index = max(index, last+1)
		return f.store.BeginRestore(index)
	}}
	txn, err := r.Read(io.MultiReader(chunkReaders(a.restore)...))
	if err != nil {
		return replication.Applied{}, err
	}
	meta := txn.Meta()
	meta.IndexOffset = index - logIndex
	txn.ConfigWriter().SetMeta(meta)
	// The audit records are those of this cluster: a restore must not remove the traces of
	// changes, nor add records that the snapshot claims.
	txn.AuditWriter().Replace(before.AuditRecords())
	storeAudit(a.entry, txn)
	snap, err := f.commitRestore(before, txn)
	if err != nil {
		return replication.Applied{}, err
	}
	return replication.Applied{Index: index, Result: &replication.Result{Index: index}, Snap: snap}, nil
}

func chunkReaders(u *state.Upload) []io.Reader {
	list := make([]io.Reader, len(u.Chunks))
	for i, c := range u.Chunks {
		list[i] = bytes.NewReader(c)
	}
	return list
}
