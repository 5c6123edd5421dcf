package blob

import (
	"errors"
)

// ErrNotFound means that there is no such blob.
var ErrNotFound = errors.New("not found")

// ErrIncomplete means that chunks of a blob are missing.
var ErrIncomplete = errors.New("the blob is incomplete")

// ErrDigest means that a blob's bytes are not those of its digest.
var ErrDigestMismatch = errors.New("the blob does not have its digest")
