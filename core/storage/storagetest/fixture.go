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

// soak multiplies a test's count when CEDE_SOAK=1, and divides it when
// CEDE_QUICK=1.
func Soak(n int) int {
	switch {
	case os.Getenv("CEDE_SOAK") == "1":
		return n * 50
	case os.Getenv("CEDE_QUICK") != "":
		return max(1, n/4)
	}
	return n
}

// small asks for little room, for tests on small disks.
func SmallLogConfig() raftlog.Config { return raftlog.Config{MinFree: 48 << 20} }

// openLog opens the log in dir and closes it with the test.
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

// check runs a property in a folder of its own, so many times, and many more
// when CEDE_SOAK asks for it.
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

// openStore opens a data directory and closes it with the test.
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

func Config(dir string, change ...func(*storage.Config)) storage.Config {
	cfg := storage.Config{Dir: dir, Log: SmallLogConfig()}
	for _, f := range change {
		f(&cfg)
	}
	return cfg
}

// module makes bytes that stand for a policy module.
func RandomBytes(size int, seed uint64) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

// upload puts a blob in chunks of the given size, the last one first.
func UploadBlob(t testing.TB, b *blob.Store, data []byte, chunk int) string {
	t.Helper()
	digest := blob.Digest(data)
	for at := (len(data) - 1) / chunk * chunk; at >= 0; at -= chunk {
		for range 2 { // as replaying the log does
			if err := b.PutChunk(digest, int64(at), data[at:min(at+chunk, len(data))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return digest
}
