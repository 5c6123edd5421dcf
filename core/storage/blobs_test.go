package storage_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/storage"
)

// openStore opens a data directory and closes it with the test.
func openStore(t testing.TB, dir string, change ...func(*storage.Config)) *storage.Store {
	t.Helper()
	s, err := storage.Open(config(dir, change...))
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

func config(dir string, change ...func(*storage.Config)) storage.Config {
	cfg := storage.Config{Dir: dir, Log: small()}
	for _, f := range change {
		f(&cfg)
	}
	return cfg
}

// module makes bytes that stand for a policy module.
func module(size int, seed uint64) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

// upload puts a blob in chunks of the given size, the last one first.
func upload(t testing.TB, b *storage.Blobs, data []byte, chunk int) string {
	t.Helper()
	digest := storage.Digest(data)
	for at := (len(data) - 1) / chunk * chunk; at >= 0; at -= chunk {
		for range 2 { // as replaying the log does
			if err := b.PutChunk(digest, int64(at), data[at:min(at+chunk, len(data))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return digest
}

func TestBlobs_ChunksInAnyOrderMakeABlob(t *testing.T) {
	b := openStore(t, t.TempDir()).Blobs()
	for i, size := range []int{1, 1000, storage.ChunkBytes, storage.ChunkBytes + 1, storage.BlobBytes} {
		data := module(size, uint64(i))
		digest := upload(t, b, data, storage.ChunkBytes)
		if has, err := b.Has(digest); has || err != nil {
			t.Errorf("it is there before it is finished: %v", err)
		}
		for range 2 {
			if err := b.Finish(digest, int64(size)); err != nil {
				t.Fatal(err)
			}
		}
		got, err := b.Get(digest)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		if n, err := b.Size(digest); n != int64(size) || err != nil {
			t.Errorf("size %d, %v; want %d", n, err, size)
		}
	}
	list, err := b.List()
	if err != nil || len(list) != 5 {
		t.Errorf("%d blobs, %v", len(list), err)
	}
}

func TestBlobs_CountOnlyWhenWhole(t *testing.T) {
	b := openStore(t, t.TempDir()).Blobs()
	data := module(3000, 1)
	digest := storage.Digest(data)
	put := func(at int, part []byte) {
		t.Helper()
		if err := b.PutChunk(digest, int64(at), part); err != nil {
			t.Fatal(err)
		}
	}
	put(0, data[:1000])
	put(2000, data[2000:])
	if err := b.Finish(digest, 3000); !errors.Is(err, storage.ErrIncomplete) {
		t.Errorf("a chunk is missing: %v", err)
	}
	put(1000, data[:1000])
	if err := b.Finish(digest, 3000); !errors.Is(err, storage.ErrDigest) {
		t.Errorf("a chunk is wrong: %v", err)
	}
	if list, err := b.List(); err != nil || len(list) != 1 || list[0].Finished || list[0].Size != 3000 {
		t.Errorf("unfinished: %+v, %v", list, err)
	}
	put(1000, data[1000:2000])
	put(500, data[500:700]) // of somebody who cuts differently
	if err := b.Finish(digest, 2000); !errors.Is(err, storage.ErrDigest) {
		t.Errorf("shorter than it is: %v", err)
	}
	if err := b.Finish(digest, 3000); err != nil {
		t.Error(err)
	}
	if err := b.Finish(digest, 2999); err == nil {
		t.Error("it has another size the second time")
	}
	if list, err := b.List(); err != nil || len(list) != 1 || !list[0].Finished || list[0].Size != 3000 {
		t.Errorf("finished: %+v, %v", list, err)
	}
	for range 2 {
		if err := b.Delete(digest); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Get(digest); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("after it was deleted: %v", err)
	}
	if err := b.Finish(digest, 3000); !errors.Is(err, storage.ErrIncomplete) {
		t.Errorf("its chunks are still there: %v", err)
	}
}

func TestBlobs_RefuseNonsense(t *testing.T) {
	b := openStore(t, t.TempDir()).Blobs()
	good := storage.Digest([]byte("x"))
	for _, err := range []error{
		b.PutChunk("sha256:00", 0, []byte("x")),
		b.PutChunk("md5:"+good[7:], 0, []byte("x")),
		b.PutChunk(good, -1, []byte("x")),
		b.PutChunk(good, storage.BlobBytes, []byte("x")),
		b.PutChunk(good, 0, nil),
		b.PutChunk(good, 0, make([]byte, storage.ChunkBytes+1)),
		b.Finish(good, storage.BlobBytes+1),
		b.Finish(good, 0),
		b.Delete("x"),
	} {
		if err == nil {
			t.Error("nonsense was taken")
		}
	}
}

func TestBlobs_SurviveReopening(t *testing.T) {
	dir := t.TempDir()
	data := module(700_000, 3)
	s := openStore(t, dir)
	digest := upload(t, s.Blobs(), data, 100_000)
	if err := errors.Join(s.Blobs().Finish(digest, int64(len(data))), s.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := openStore(t, dir).Blobs().Get(digest)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
