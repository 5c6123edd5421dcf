package replication

import (
	"encoding/hex"
	"strings"
)

const (
	// MaxEntry is the largest size of an encoded entry, in bytes. Raft sends whole
	// entries between heartbeats, so that a larger entry would delay heartbeats.
	MaxEntry = 512 << 10
	// MaxChunk is the largest size of one PutChunk, in bytes.
	MaxChunk = 256 << 10
	// MaxModule is the largest size of a policy module, in bytes. A module is part
	// of the state until it is loaded.
	MaxModule = 8 << 20
	// MaxRestore is the largest size of a snapshot that can be restored, in bytes. It is
	// in the log and in the memory of every server until it is restored.
	MaxRestore = 1 << 30
)

// snapshotPrefix distinguishes uploads of snapshots from those of modules.
const snapshotPrefix = "snapshot:"

// SnapshotDigest returns the digest under which a snapshot with a SHA-256 is uploaded.
func SnapshotDigest(sum [32]byte) string { return snapshotPrefix + hex.EncodeToString(sum[:]) }

// IsSnapshotDigest reports whether a digest is that of a snapshot.
func IsSnapshotDigest(digest string) bool { return strings.HasPrefix(digest, snapshotPrefix) }
