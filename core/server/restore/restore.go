// Package restore replaces the state of a cluster by a snapshot that an operator supplies.
//
// The snapshot is verified, then uploaded into the log in chunks, and takes effect with one
// entry. So it is restored everywhere or nowhere, at one index of the log, and survives a
// change of leader like any other write. (raft.Restore instead replaces the state of the
// leader first: if it is lost before the others have followed, their states differ.)
//
// It does not decide who may restore, and never merges states. A Restorer is safe for
// concurrent use; the last restore wins.
package restore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// A Restorer restores snapshots.
type Restorer struct {
	writer   *logwriter.Writer
	versions replication.Versions // of the log that this server understands
	commits  chan Commit
}

// New returns a Restorer. The caller runs what Commits delivers.
func New(w *logwriter.Writer, v replication.Versions) *Restorer {
	return &Restorer{writer: w, versions: v, commits: make(chan Commit)}
}

// A Commit is the entry that replaces the state, which is not written yet.
type Commit struct{ run func() }

// Commits delivers the entries of restores. The receiver must end its term of leadership,
// call Run, and start another term: plans that were verified against the replaced state are
// never written that way.
func (r *Restorer) Commits() <-chan Commit { return r.commits }

// Run writes the entry and answers the caller of RestoreSnapshot.
func (c Commit) Run() { c.run() }

// RestoreSnapshot replaces the state of the whole cluster by one that was saved, and returns
// the index of the new state. Unless the error has apierror.CodeUnknownOutcome, nothing was
// replaced.
func (r *Restorer) RestoreSnapshot(ctx context.Context, in io.Reader) (index uint64, err error) {
	if err := r.writer.CheckLeader(); err != nil {
		return 0, err
	}
	file, err := os.CreateTemp("", "cede-restore-*")
	if err != nil {
		return 0, fmt.Errorf("restore a snapshot: %w", err)
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }() // a temporary file
	digest, err := r.verify(in, file)
	if err != nil {
		return 0, err
	}
	if err := r.upload(ctx, file, digest); err != nil {
		return 0, notRestored(err)
	}
	done := make(chan struct{})
	commit := func() {
		defer close(done)
		index, err = r.writer.CommitIndex(ctx, &replication.RestoreState{Digest: digest})
	}
	select {
	case r.commits <- Commit{commit}:
		<-done
		return index, err
	case <-ctx.Done():
		return 0, notRestored(ctx.Err())
	}
}

// verify copies a snapshot into a file, reads it into a separate state, and returns its
// digest. It fails if the snapshot is damaged, or if this cluster cannot run with it.
func (r *Restorer) verify(in io.Reader, file *os.File) (digest string, err error) {
	sum := sha256.New()
	limited := &io.LimitedReader{R: in, N: replication.MaxRestore + 1}
	info, err := snapshot.Inspect(io.TeeReader(limited, io.MultiWriter(file, sum)))
	_, damaged := errors.AsType[*snapshot.Error](err)
	switch {
	case limited.N <= 0:
		return "", apierror.New(apierror.CodeTooLarge, "the snapshot was not restored: it is larger than %d MiB", replication.MaxRestore>>20).
			WithHint("collect garbage before it is saved: cede operator gc --force")
	case damaged:
		return "", invalid(err)
	case err != nil:
		return "", err // of the caller's reader
	}
	if err := errors.Join(r.versions.CheckNewest(info.Version), r.versions.CheckOldest(info.Version)); err != nil {
		return "", invalid(err)
	}
	return replication.SnapshotDigest([32]byte(sum.Sum(nil))), nil
}

func invalid(err error) error {
	return apierror.New(apierror.CodeInvalid, "the snapshot was not restored: %v", err).WithCause(err).
		WithHint("check the file: cede operator snapshot inspect FILE")
}

// upload writes the chunks of a file into the log.
func (r *Restorer) upload(ctx context.Context, file *os.File, digest string) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for offset := int64(0); ; {
		chunk := make([]byte, replication.MaxChunk) // the log retains it
		n, err := io.ReadFull(file, chunk)
		if n > 0 {
			if _, err := r.writer.Commit(ctx, &replication.PutChunk{Digest: digest, Offset: offset, Data: chunk[:n]}); err != nil {
				return err
			}
			offset += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// notRestored returns the error of an upload that failed. Chunks have no effect, so the
// outcome of the restore is known even if that of a chunk is not.
func notRestored(err error) error {
	e := apierror.New(apierror.CodeUnavailable, "the snapshot was not restored: %v", err).WithCause(err).
		WithHint("nothing was replaced: send the request again")
	if cause, ok := errors.AsType[*apierror.Error](err); ok && cause.Code != apierror.CodeUnknownOutcome {
		e.Code = cause.Code
	}
	return e
}
