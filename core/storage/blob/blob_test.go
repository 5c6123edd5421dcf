package blob_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

func TestStore_AssemblesChunksInAnyOrder(t *testing.T) {
	t.Parallel()
	b := storagetest.OpenStore(t, t.TempDir()).Blobs()
	for i, size := range []int{1, 1000, blob.MaxChunkBytes, blob.MaxChunkBytes + 1, blob.MaxBytes} {
		data := storagetest.RandomBytes(size, uint64(i))
		digest := storagetest.UploadBlob(t, b, data, blob.MaxChunkBytes)
		if _, err := b.Get(digest); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("blob exists before it is finished: %v", err)
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
	}
	list, err := b.List()
	if err != nil || len(list) != 5 {
		t.Errorf("%d blobs, %v", len(list), err)
	}
}

func TestStore_FinishVerifiesContent(t *testing.T) {
	t.Parallel()
	b := storagetest.OpenStore(t, t.TempDir()).Blobs()
	data := storagetest.RandomBytes(3000, 1)
	digest := blob.Digest(data)
	put := func(at int, part []byte) {
		t.Helper()
		if err := b.PutChunk(digest, int64(at), part); err != nil {
			t.Fatal(err)
		}
	}
	put(0, data[:1000])
	put(2000, data[2000:])
	if err := b.Finish(digest, 3000); !errors.Is(err, blob.ErrIncomplete) {
		t.Errorf("missing chunk: %v", err)
	}
	put(1000, data[:1000])
	if err := b.Finish(digest, 3000); !errors.Is(err, blob.ErrDigestMismatch) {
		t.Errorf("wrong chunk: %v", err)
	}
	if list, err := b.List(); err != nil || len(list) != 1 || list[0].Finished || list[0].Size != 3000 {
		t.Errorf("unfinished: %+v, %v", list, err)
	}
	put(1000, data[1000:2000])
	put(500, data[500:700]) // from a client with another chunk size
	if err := b.Finish(digest, 2000); !errors.Is(err, blob.ErrDigestMismatch) {
		t.Errorf("size too small: %v", err)
	}
	if err := b.Finish(digest, 3000); err != nil {
		t.Error(err)
	}
	if err := b.Finish(digest, 2999); err == nil {
		t.Error("Finish accepted another size")
	}
	if list, err := b.List(); err != nil || len(list) != 1 || !list[0].Finished || list[0].Size != 3000 {
		t.Errorf("finished: %+v, %v", list, err)
	}
	for range 2 {
		if err := b.Delete(digest); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Get(digest); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("after Delete: %v", err)
	}
	if err := b.Finish(digest, 3000); !errors.Is(err, blob.ErrIncomplete) {
		t.Errorf("chunks remain after Delete: %v", err)
	}
}

func TestStore_RejectsInvalidArguments(t *testing.T) {
	t.Parallel()
	b := storagetest.OpenStore(t, t.TempDir()).Blobs()
	good := blob.Digest([]byte("x"))
	for _, err := range []error{
		b.PutChunk("sha256:00", 0, []byte("x")),
		b.PutChunk("md5:"+good[7:], 0, []byte("x")),
		b.PutChunk(good, -1, []byte("x")),
		b.PutChunk(good, blob.MaxBytes, []byte("x")),
		b.PutChunk(good, 0, nil),
		b.PutChunk(good, 0, make([]byte, blob.MaxChunkBytes+1)),
		b.Finish(good, blob.MaxBytes+1),
		b.Finish(good, 0),
		b.Delete("x"),
	} {
		if err == nil {
			t.Error("invalid argument was accepted")
		}
	}
}

func TestStore_SurvivesReopening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := storagetest.RandomBytes(700_000, 3)
	s := storagetest.OpenStore(t, dir)
	digest := storagetest.UploadBlob(t, s.Blobs(), data, 100_000)
	if err := errors.Join(s.Blobs().Finish(digest, int64(len(data))), s.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := storagetest.OpenStore(t, dir).Blobs().Get(digest)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
