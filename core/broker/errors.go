package broker

import "errors"

// ErrDisabled means this server is not the leader: its broker holds nothing.
var ErrDisabled = errors.New("evaluation broker is disabled")

// ErrNoEvaluation means that no evaluation became ready in time.
var ErrNoEvaluation = errors.New("no evaluation is ready")

// ErrNotOutstanding means nobody holds the evaluation: it was acked, nacked or
// never delivered.
var ErrNotOutstanding = errors.New("evaluation is not outstanding")

// ErrTokenMismatch means another worker holds the evaluation now.
var ErrTokenMismatch = errors.New("evaluation token does not match")

// ErrNackTimeout means the lease ran out before it was settled or renewed; the
// evaluation counts as nacked and whatever was computed for it is void.
var ErrNackTimeout = errors.New("evaluation nack timeout reached")

// ErrSnapshotTooOld means the work was done on a snapshot that lacks changes
// the evaluation stands for; the lease goes on, so do it again on a newer one.
var ErrSnapshotTooOld = errors.New("snapshot is older than what the evaluation covers")
