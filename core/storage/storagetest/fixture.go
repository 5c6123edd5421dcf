package storagetest

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

// Soak multiplies a test's count if CEDE_SOAK=1, and divides it if CEDE_QUICK is set.
func Soak(n int) int {
	switch {
	case os.Getenv("CEDE_SOAK") == "1":
		return n * 50
	case os.Getenv("CEDE_QUICK") != "":
		return max(1, n/4)
	}
	return n
}

// SmallLogConfig returns a configuration that requires little free space.
func SmallLogConfig() raftlog.Config { return raftlog.Config{MinFree: 48 << 20} }

// OpenLog opens the log in dir and closes it when the test ends.
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

// CheckProperty runs a property in directories of its own, runs times by default and more
// often if CEDE_SOAK is set.
func CheckProperty(t *testing.T, runs int, property func(*rapid.T, string)) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	before := f.Value.String()
	defer func() { _ = f.Value.Set(before) }()
	if err := f.Value.Set(strconv.Itoa(Soak(runs))); err != nil {
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

// RandomBytes returns reproducible content of the given size, for modules.
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
