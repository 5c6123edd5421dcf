package blob

import (
	"errors"
)

// ErrNotFound means that the blob does not exist.
var ErrNotFound = errors.New("not found")

// ErrIncomplete means that chunks of a blob are missing.
var ErrIncomplete = errors.New("blob is incomplete")

// ErrDigestMismatch means that the bytes of a blob do not match its digest.
var ErrDigestMismatch = errors.New("blob does not match its digest")
