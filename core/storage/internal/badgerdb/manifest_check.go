package badgerdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
)

// A damaged table is worse than a missing one: some damage ends the process in a goroutine
// of Badger, and for other damage Badger drops the table without an error. Tables are
// therefore checked before Badger opens them.

// CheckTables checks the manifest of a Badger directory and the index of each listed table,
// or every block if whole is set. It returns one error per damaged file.
func CheckTables(dir string, whole bool) (problems []error) {
	ids, err := listedTables(dir)
	if err != nil {
		return []error{err}
	}
	for _, id := range ids {
		if err := checkListed(dir, id, whole); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// checkListed checks one table.
func checkListed(dir string, id uint64, whole bool) error {
	path := table.NewFilename(id, dir)
	if err := Guard(func() error { return checkTable(path, whole) }); err != nil {
		return &datadir.FileError{Path: path, Err: datadir.WithoutPath(err)}
	}
	return nil
}

// CheckBlocks checks every block of the tables of an open database, until stop is closed.
// It calls report for each damaged table. Tables that a compaction deletes meanwhile are
// skipped. Badger's iterators skip a damaged block without an error.
func CheckBlocks(dir string, stop <-chan struct{}, report func(error)) {
	ids, err := listedTables(dir)
	if err != nil {
		report(err)
		return
	}
	for _, id := range ids {
		select {
		case <-stop:
			return
		default:
		}
		if err := checkListed(dir, id, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			report(err)
		}
	}
}

// listedTables returns the IDs of the tables in the manifest, ascending. It returns
// none if the directory has no manifest; see ManifestMissing. The manifest is replayed
// with Badger's own function, which verifies its checksums.
func listedTables(dir string) ([]uint64, error) {
	path := filepath.Join(dir, badger.ManifestFilename)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var listed badger.Manifest
	err = Guard(func() (err error) {
		listed, _, err = badger.ReplayManifestFile(f, 0, Options(dir, slog.New(slog.DiscardHandler)))
		return err
	})
	if err != nil {
		return nil, &datadir.FileError{Path: path, Err: err}
	}
	return slices.Sorted(maps.Keys(listed.Tables)), nil
}

// UnlistedTableBytes returns the size of tables that a process was writing when it died.
// Badger deletes them when it opens the directory, so they count as free space.
func UnlistedTableBytes(dir string) int64 {
	ids, err := listedTables(dir)
	if err != nil {
		return 0 // opening reports the error
	}
	total := int64(0)
	paths, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
	for _, path := range paths {
		id, isTable := table.ParseFileID(path)
		if _, listed := slices.BinarySearch(ids, id); !isTable || listed {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			total += disk.AllocatedBytes(info)
		}
	}
	return total
}

var (
	errTable = errors.New("checksum mismatch")
	// errEmptyTable means that a table has no blocks. Badger never writes such a table.
	errEmptyTable = errors.New("no content")
)

// checkTable reads a table from its end: the length of a checksum, the checksum, the
// length of the index, and the index, which lists the blocks. It reads the index only,
// or all blocks if whole is set.
func checkTable(path string, whole bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	at := info.Size()
	index, err := readSummed(f, &at)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	root := fb.GetRootAsTableIndex(index, 0)
	if root.OffsetsLength() == 0 {
		return fmt.Errorf("index: %w", errEmptyTable)
	}
	if !whole {
		return nil
	}
	for i := range root.OffsetsLength() {
		var o fb.BlockOffset
		if !root.Offsets(&o, i) {
			return fmt.Errorf("index: %w", errTable)
		}
		if err := checkBlock(f, int64(o.Offset()), int64(o.Len()), at); err != nil {
			return fmt.Errorf("block %d at byte %d: %w", i, o.Offset(), err)
		}
	}
	return nil
}

// readSummed reads the data that ends at *at, followed by its checksum, and moves *at to
// the start of the data. It returns an error if the checksum does not match.
func readSummed(f *os.File, at *int64) ([]byte, error) {
	sum, err := readSized(f, at)
	if err != nil {
		return nil, err
	}
	data, err := readSized(f, at)
	if err != nil {
		return nil, err
	}
	return data, verifySum(data, sum)
}

// readSized reads the data that ends at *at, followed by its 4-byte length.
func readSized(f *os.File, at *int64) ([]byte, error) {
	length, err := readBefore(f, at, 4)
	if err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(length))
	// Nothing that precedes its size is empty. Zeros would otherwise be valid: a checksum
	// of 0 bytes means 0, which is the checksum of an index of 0 bytes. Badger panics on it.
	if size == 0 {
		return nil, errEmptyTable
	}
	return readBefore(f, at, size)
}

// readBefore reads the size bytes that end at *at and moves *at to their start.
func readBefore(f *os.File, at *int64, size int64) ([]byte, error) {
	// A damaged length would otherwise request gigabytes of memory.
	if size > *at {
		return nil, errTable
	}
	*at -= size
	b := make([]byte, size)
	_, err := f.ReadAt(b, *at)
	return b, err
}

// checkBlock verifies one uncompressed block, which ends with its checksum and the length
// of the checksum. end is the start of the index.
func checkBlock(f *os.File, from, size, end int64) error {
	if from+size > end {
		return errTable
	}
	at := from + size
	sum, err := readSized(f, &at)
	if err != nil {
		return err
	}
	if at < from {
		return errTable
	}
	data, err := readBefore(f, &at, at-from)
	if err != nil {
		return err
	}
	return verifySum(data, sum)
}

// verifySum returns errTable if sum, a serialized pb.Checksum, does not match data.
func verifySum(data, sum []byte) error {
	var want pb.Checksum
	if proto.Unmarshal(sum, &want) != nil || y.VerifyChecksum(data, &want) != nil {
		return errTable
	}
	return nil
}

// hasJournals reports whether a Badger directory contains journals of memory tables. They
// remain if the process did not close the directory.
func hasJournals(dir string) bool {
	found, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	return err == nil && len(found) > 0
}

// ManifestMissing reports whether a Badger directory has tables or journals but no
// manifest. Badger would create a new manifest and delete the tables.
func ManifestMissing(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, badger.ManifestFilename)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	return err == nil && (len(tables) > 0 || hasJournals(dir))
}
