package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
)

// Limits of chunks and blobs, in bytes.
const (
	MaxChunkBytes = 256 << 10 // of one chunk
	MaxBytes      = 8 << 20   // of one blob
)

const digestScheme = "sha256:"

// Digest returns the name of a blob: sha256: and the hash in hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return digestScheme + hex.EncodeToString(sum[:])
}

// A Store keeps policy modules by the digest of their bytes. A blob arrives in chunks,
// in any order and with repetitions, and exists once Finish has verified it. Whatever
// PutChunk, Finish and Delete have returned for is on the disk. It is safe for
// concurrent use. A directory may hold many unfinished blobs; their owner deletes them.
type Store struct{ kv *kvstore.Store }

// New returns the blobs of a key-value store.
func New(s *kvstore.Store) *Store { return &Store{s} }

// An Info describes a blob, finished or not.
type Info struct {
	Digest   string
	Size     int64 // bytes received so far if it is not finished
	Finished bool
}

// PutChunk stores the bytes at an offset of a blob. Repeating a call changes nothing,
// nor does any call for a finished blob. It returns an error if the digest, the offset
// or the size is out of range. Bytes are not verified before Finish, since a chunk
// alone has no digest.
func (b *Store) PutChunk(digest string, offset int64, data []byte) error {
	sum, err := parseDigest(digest)
	if err != nil {
		return err
	}
	switch {
	case len(data) == 0 || len(data) > MaxChunkBytes:
		return fmt.Errorf("blob %s: chunk has %d bytes: must be between 1 and %d", digest, len(data), MaxChunkBytes)
	case offset < 0 || offset > MaxBytes-int64(len(data)):
		return fmt.Errorf("blob %s: chunk at offset %d with %d bytes exceeds the maximum of %d", digest, offset, len(data), MaxBytes)
	}
	// Mu is held from the check to the write: a concurrent Finish must not complete the
	// blob in between.
	b.kv.Mu.Lock()
	defer b.kv.Mu.Unlock()
	key, value := chunkKey(sum, offset), badgerdb.Seal(data)
	// Replaying the Raft log repeats every chunk: a read is much cheaper than another
	// synced write.
	var there bool
	err = badgerdb.View(b.kv.DB, func(txn *badger.Txn) error {
		finished, err := badgerdb.Get(txn, blobKey(sum))
		if err != nil {
			return err
		}
		old, err := badgerdb.Get(txn, key)
		there = finished != nil || bytes.Equal(old, value)
		return err
	})
	if err != nil || there {
		return err
	}
	return b.kv.Update(true, func(txn *badger.Txn) error { return txn.Set(key, value) })
}

// Finish verifies and completes a blob. It returns ErrIncomplete if chunks are missing,
// and ErrDigestMismatch if the bytes do not match the digest. Both can be corrected
// with PutChunk. Repeating it with the same size changes nothing; another size is an
// error. It costs a pass over all chunks.
func (b *Store) Finish(digest string, size int64) error {
	sum, err := parseDigest(digest)
	if err != nil {
		return err
	}
	if size < 1 || size > MaxBytes {
		return fmt.Errorf("blob %s: size is %d bytes: must be between 1 and %d", digest, size, MaxBytes)
	}
	b.kv.Mu.Lock()
	defer b.kv.Mu.Unlock()
	var stale [][]byte
	var done bool
	err = badgerdb.View(b.kv.DB, func(txn *badger.Txn) error {
		switch known, ok, err := blobSize(txn, sum); {
		case err != nil:
			return err
		case ok && known != size:
			return fmt.Errorf("blob %s: size is %d bytes, not %d", digest, known, size)
		case ok:
			done = true
			return nil
		}
		// The hash covers the stored content rather than the caller's chunks.
		h := sha256.New()
		if err := eachChunk(txn, sum, size, hashing(h)); err != nil {
			return fmt.Errorf("blob %s: %w", digest, err)
		}
		if !bytes.Equal(h.Sum(nil), sum[:]) {
			return fmt.Errorf("%w: %s", ErrDigestMismatch, digest)
		}
		// Chunks at other offsets can remain from a client with another chunk size.
		var err error
		stale, err = otherChunks(txn, sum, size)
		return err
	})
	if err != nil || done {
		return err
	}
	return b.kv.Update(true, func(txn *badger.Txn) error {
		for _, key := range stale {
			if err := txn.Delete(key); err != nil {
				return err
			}
		}
		return txn.Set(blobKey(sum), badgerdb.Seal(binary.BigEndian.AppendUint64(nil, uint64(size))))
	})
}

// Get returns the content of a finished blob after verifying its digest. It returns
// ErrNotFound if there is none, and a *datadir.DamageError if the content is damaged.
// Reading verifies every time, because a module that changed on the disk must not be
// executed. The result belongs to the caller.
func (b *Store) Get(digest string) (data []byte, err error) {
	sum, err := parseDigest(digest)
	if err != nil {
		return nil, err
	}
	err = badgerdb.View(b.kv.DB, func(txn *badger.Txn) error {
		size, ok, err := blobSize(txn, sum)
		if err != nil {
			return b.damage(digest, err)
		}
		if !ok {
			return fmt.Errorf("blob %s: %w", digest, ErrNotFound)
		}
		data = make([]byte, 0, size)
		err = eachChunk(txn, sum, size, func(chunk []byte) { data = append(data, chunk...) })
		if err == nil && sha256.Sum256(data) != sum {
			err = ErrDigestMismatch
		}
		if err != nil {
			return b.damage(digest, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// damage returns the error for a blob that fails verification. A module can be uploaded
// again, so its remedy is milder than that of the store.
func (b *Store) damage(digest string, err error) error {
	return &datadir.DamageError{
		Part: "policy module", Path: b.kv.Layout.Store(), Problem: digest + " is damaged", Err: err,
		Remedy: "delete it and load the policy again, or copy it from another server; if more is damaged: " + datadir.RemedyStore,
	}
}

// Delete removes a blob, finished or not. It returns nil if the blob does not exist.
// The description goes first: if a crash interrupts the deletion, an unfinished blob
// remains, and repeating the call completes it.
func (b *Store) Delete(digest string) error {
	sum, err := parseDigest(digest)
	if err != nil {
		return err
	}
	b.kv.Mu.Lock()
	defer b.kv.Mu.Unlock()
	keys := [][]byte{blobKey(sum)}
	err = badgerdb.View(b.kv.DB, func(txn *badger.Txn) error {
		badgerdb.WalkKeys(txn, append([]byte{kvstore.ChunkPrefix}, sum[:]...), func(item *badger.Item) bool {
			keys = append(keys, item.KeyCopy(nil))
			return true
		})
		return nil
	})
	if err != nil {
		return err
	}
	return badgerdb.DeleteKeys(func(f func(*badger.Txn) error) error { return b.kv.Update(true, f) }, keys)
}

// List returns all blobs by digest, including unfinished ones. It reads keys and
// descriptions, and no content.
func (b *Store) List() (list []Info, err error) {
	err = badgerdb.View(b.kv.DB, func(txn *badger.Txn) error {
		list, err = listBlobs(txn)
		return err
	})
	return list, err
}

// listBlobs merges finished blobs with the chunks of unfinished ones. Keys are ordered by
// digest in both ranges.
func listBlobs(txn *badger.Txn) ([]Info, error) {
	var list []Info
	add := func(key []byte) *Info {
		digest := digestScheme + hex.EncodeToString(key[1:1+sha256.Size])
		if n := len(list); n == 0 || list[n-1].Digest != digest {
			list = append(list, Info{Digest: digest})
		}
		return &list[len(list)-1]
	}
	badgerdb.WalkKeys(txn, []byte{kvstore.BlobPrefix}, func(item *badger.Item) bool {
		add(item.Key()).Finished = true
		return true
	})
	for i := range list {
		sum, err := parseDigest(list[i].Digest)
		if err != nil {
			return nil, err
		}
		if list[i].Size, _, err = blobSize(txn, sum); err != nil {
			return nil, fmt.Errorf("blob %s: %w", list[i].Digest, err)
		}
	}
	finished := len(list)
	badgerdb.WalkKeys(txn, []byte{kvstore.ChunkPrefix}, func(item *badger.Item) bool {
		_, done := slices.BinarySearchFunc(list[:finished], item.Key(), func(b Info, key []byte) int {
			return strings.Compare(b.Digest[len(digestScheme):], hex.EncodeToString(key[1:1+sha256.Size]))
		})
		if !done {
			// 4 bytes of each chunk are its checksum.
			add(item.Key()).Size += item.ValueSize() - 4
		}
		return true
	})
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Digest, b.Digest) })
	return list, nil
}

// parseDigest returns the hash in a digest. It accepts lower case only, so that each blob
// has one name.
func parseDigest(digest string) (sum [sha256.Size]byte, err error) {
	text, ok := strings.CutPrefix(digest, digestScheme)
	b, err := hex.DecodeString(text)
	if !ok || err != nil || len(b) != len(sum) || strings.ToLower(text) != text {
		return sum, fmt.Errorf("invalid digest %q: must be sha256: and 64 lower-case hexadecimal digits", digest)
	}
	return [sha256.Size]byte(b), nil
}

// blobKey returns the key of a finished blob. It is written last, so that an interrupted
// upload leaves no finished blob.
func blobKey(sum [sha256.Size]byte) []byte { return append([]byte{kvstore.BlobPrefix}, sum[:]...) }

// chunkKey returns the key of a chunk: prefix, hash, offset.
func chunkKey(sum [sha256.Size]byte, offset int64) []byte {
	return binary.BigEndian.AppendUint32(append([]byte{kvstore.ChunkPrefix}, sum[:]...), uint32(offset))
}

// blobSize returns the size of a finished blob, and whether it exists.
func blobSize(txn *badger.Txn, sum [sha256.Size]byte) (size int64, ok bool, err error) {
	b, err := badgerdb.Get(txn, blobKey(sum))
	if err != nil || b == nil {
		return 0, false, err
	}
	if b, err = badgerdb.Unseal(b); err != nil || len(b) != 8 {
		return 0, false, fmt.Errorf("description: %w", badgerdb.ErrChecksum)
	}
	return int64(binary.BigEndian.Uint64(b)), true, nil
}

// eachChunk calls f with the chunks of a blob in order. Each chunk starts where the
// previous one ended, so chunks at other offsets are skipped. It returns ErrIncomplete
// at the first gap, badgerdb.ErrChecksum if a chunk is damaged, and ErrDigestMismatch
// if the last chunk reaches beyond size.
func eachChunk(txn *badger.Txn, sum [sha256.Size]byte, size int64, f func([]byte)) error {
	for at := int64(0); at < size; {
		b, err := badgerdb.Get(txn, chunkKey(sum, at))
		if err != nil {
			return err
		}
		if b == nil {
			return fmt.Errorf("%w: chunk at offset %d is missing", ErrIncomplete, at)
		}
		if b, err = badgerdb.Unseal(b); err != nil || len(b) == 0 {
			return fmt.Errorf("chunk at offset %d: %w", at, badgerdb.ErrChecksum)
		}
		f(b)
		if at += int64(len(b)); at > size {
			return fmt.Errorf("%w: at least %d bytes, want %d", ErrDigestMismatch, at, size)
		}
	}
	return nil
}

func hashing(h hash.Hash) func([]byte) { return func(b []byte) { _, _ = h.Write(b) } }

// otherChunks returns the keys of stored chunks that are not part of the blob. They
// would never be read, and occupy the disk until the blob is deleted.
func otherChunks(txn *badger.Txn, sum [sha256.Size]byte, size int64) (keys [][]byte, err error) {
	at, used := int64(0), map[uint32]bool{}
	err = eachChunk(txn, sum, size, func(b []byte) {
		used[uint32(at)] = true
		at += int64(len(b))
	})
	badgerdb.WalkKeys(txn, append([]byte{kvstore.ChunkPrefix}, sum[:]...), func(item *badger.Item) bool {
		key := item.Key()
		if !used[binary.BigEndian.Uint32(key[len(key)-4:])] {
			keys = append(keys, item.KeyCopy(nil))
		}
		return true
	})
	return keys, err
}
