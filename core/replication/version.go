package replication

import "fmt"

// The versions of the log that this release understands. Releases are rolled out
// one after the other, so that each understands the entries of its predecessor.
const (
	Oldest uint32 = 1
	Newest uint32 = 3
)

// Versions is a range of log versions, both ends included.
type Versions struct{ Oldest, Newest uint32 }

// Ours returns the versions that this release understands.
func Ours() Versions { return Versions{Oldest, Newest} }

// OrOurs returns v, or Ours if v is zero.
func (v Versions) OrOurs() Versions {
	if v == (Versions{}) {
		return Ours()
	}
	return v
}

// String returns the range, for messages.
func (v Versions) String() string { return fmt.Sprintf("%d to %d", v.Oldest, v.Newest) }

// CheckNewest returns a FormatError if a cluster's version is above the range. A
// server must not apply such a state: it would ignore fields that it does not
// understand, and diverge from the other servers.
func (v Versions) CheckNewest(version uint32) error {
	if version <= v.Newest {
		return nil
	}
	return FormatErrorf("the cluster is at version %d and this release understands versions %s: the cluster does not go back; run the release that it ran before, or a later one",
		version, v)
}

// CheckOldest returns a FormatError if a cluster's version is below the range. A
// server must not start from such a state: a release was skipped.
func (v Versions) CheckOldest(version uint32) error {
	if version == 0 || version >= v.Oldest { // 0: the cluster is not bootstrapped yet
		return nil
	}
	return FormatErrorf("the cluster is at version %d and this release understands versions %s: upgrade one release at a time, and wait until every server runs it",
		version, v)
}
