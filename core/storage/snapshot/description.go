package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cede-scheduler/cede/core/internal/atomicfile"
	"github.com/cede-scheduler/cede/core/internal/checkedfile"
	"github.com/cede-scheduler/cede/core/storage/datadir"
)

// Raft's store protects the content of a snapshot by a checksum in the description,
// meta.json, and nothing protects the description. A changed index or term makes Raft skip
// or wait for entries, a changed ID makes it delete other snapshots. The checksum of the
// description is therefore stored in a file of its own, so that meta.json remains as Raft
// writes it.

// checksumFile is the name of the file with the checksum of meta.json.
const checksumFile = "meta.crc32c"

// writeChecksum stores the checksum of the description of the snapshot at path.
func writeChecksum(path string) error {
	text, err := os.ReadFile(filepath.Join(path, "meta.json"))
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(path, checksumFile), []byte(checkedfile.Line(text)), 0o600)
}

// verifyDescription compares the description of the snapshot at path with its checksum.
// checked is false if there is none: an earlier release wrote the snapshot, or a crash
// ended the process before the checksum was stored.
func verifyDescription(path string, text []byte) (checked bool, err error) {
	sum := filepath.Join(path, checksumFile)
	want, err := os.ReadFile(sum)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, &datadir.FileError{Path: sum, Err: datadir.WithoutPath(err)}
	case string(want) != checkedfile.Line(text):
		return false, &datadir.FileError{Path: filepath.Join(path, "meta.json"), Err: fmt.Errorf("checksum differs from %s", checksumFile)}
	}
	return true, nil
}

// checkName returns an error if the description does not belong to the directory with
// this name, TERM-INDEX-TIME. It finds much damage of a description without checksum.
func (m *metadata) checkName(name string) error {
	if prefix := fmt.Sprintf("%d-%d-", m.Term, m.Index); m.ID != name || !strings.HasPrefix(name, prefix) {
		return fmt.Errorf("it describes snapshot %q with index %d of term %d", m.ID, m.Index, m.Term)
	}
	if m.Version != 1 {
		return fmt.Errorf("unsupported version %d", m.Version)
	}
	return nil
}
