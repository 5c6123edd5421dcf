package broker

import "errors"

// ErrDisabled means that this server is not the leader: its broker is empty.
var ErrDisabled = errors.New("evaluation broker is disabled")

// ErrNoEvaluation means that no evaluation became ready in time.
var ErrNoEvaluation = errors.New("no evaluation is ready")

// ErrNotOutstanding means that the evaluation is not delivered: it was acked,
// nacked or never dequeued.
var ErrNotOutstanding = errors.New("evaluation is not outstanding")

// ErrTokenMismatch means that the evaluation is delivered to another worker.
var ErrTokenMismatch = errors.New("evaluation token does not match")

// ErrNackTimeout means that the lease expired before an ack, nack or renewal. The
// evaluation counts as nacked, and results computed for it are void.
var ErrNackTimeout = errors.New("evaluation nack timeout reached")

// ErrSnapshotTooOld means that the evaluation was processed on a snapshot that
// lacks changes it stands for. The lease remains: process it again on a newer
// snapshot.
var ErrSnapshotTooOld = errors.New("snapshot is older than what the evaluation covers")
