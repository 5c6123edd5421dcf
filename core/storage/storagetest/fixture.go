package storagetest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

// SmallLogConfig returns a configuration that requires little free space.
func SmallLogConfig() raftlog.Config { return raftlog.Config{MinFree: 48 << 20} }

// OpenLog opens the log in dir and closes it when the test ends. A failing Close fails
// the test.
func OpenLog(t testing.TB, dir string) *raftlog.Log {
	t.Helper()
	l, err := raftlog.Open(datadir.Layout{Dir: dir}, SmallLogConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// CheckProperty runs a property the given number of times. Each run gets a directory of
// its own, which is deleted at its end, since a soak would fill the disk otherwise.
func CheckProperty(t *testing.T, runs int, property func(*rapid.T, string)) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	before := f.Value.String()
	defer func() { _ = f.Value.Set(before) }()
	if err := f.Value.Set(strconv.Itoa(runs)); err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(base, strconv.Itoa(runs))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		property(t, dir)
	})
}

// OpenStore opens a data directory and closes it when the test ends.
func OpenStore(t testing.TB, dir string, change ...func(*storage.Config)) *storage.Store {
	t.Helper()
	s, err := storage.Open(Config(dir, change...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Config returns a configuration for tests, with changes applied.
func Config(dir string, change ...func(*storage.Config)) storage.Config {
	cfg := storage.Config{Dir: dir, Log: SmallLogConfig()}
	for _, f := range change {
		f(&cfg)
	}
	return cfg
}

// RandomBytes returns reproducible content of the given size, for modules. It has no
// zeros to compress or holes to skip, as a real module has few.
func RandomBytes(size int, seed uint64) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

// UploadBlob stores a blob in chunks of the given size, the last one first, and returns its
// digest. It does not finish the blob.
func UploadBlob(t testing.TB, b *blob.Store, data []byte, chunk int) string {
	t.Helper()
	digest := blob.Digest(data)
	for at := (len(data) - 1) / chunk * chunk; at >= 0; at -= chunk {
		for range 2 { // as when the Raft log is replayed
			if err := b.PutChunk(digest, int64(at), data[at:min(at+chunk, len(data))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return digest
}

// Entry returns an entry with its index and term as data.
func Entry(index, term uint64) *raft.Log {
	return &raft.Log{
		Index: index, Term: term, Type: raft.LogType(index % 2 * uint64(raft.LogBarrier)),
		Data: fmt.Appendf(nil, "entry %d of term %d", index, term),
	}
}

// Entries returns the entries from first to last.
func Entries(first, last, term uint64) []*raft.Log {
	var list []*raft.Log
	for i := first; i <= last; i++ {
		list = append(list, Entry(i, term))
	}
	return list
}
