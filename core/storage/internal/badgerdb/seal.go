package badgerdb

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Castagnoli is the polynomial of every checksum in the data directory.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrChecksum means that a stored value does not match its checksum.
var ErrChecksum = errors.New("checksum mismatch")

// ErrMissing means that a key which must exist was not found.
var ErrMissing = errors.New("missing")

// Seal returns value with its CRC32C in front. Badger may return an older value or none
// without an error, so every value carries its own checksum.
func Seal(value []byte) []byte {
	b := make([]byte, 4, 4+len(value))
	binary.BigEndian.PutUint32(b, crc32.Checksum(value, Castagnoli))
	return append(b, value...)
}

// Unseal verifies the checksum of a sealed value and returns the value. It returns
// ErrChecksum if they do not match.
func Unseal(b []byte) ([]byte, error) {
	if len(b) < 4 || crc32.Checksum(b[4:], Castagnoli) != binary.BigEndian.Uint32(b) {
		return nil, ErrChecksum
	}
	return b[4:], nil
}
