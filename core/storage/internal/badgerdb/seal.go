package badgerdb

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

var ErrChecksum = errors.New("its checksum is wrong")

var ErrMissing = errors.New("it is missing")

// checked puts a checksum before a value.
func Seal(value []byte) []byte {
	b := make([]byte, 4, 4+len(value))
	binary.BigEndian.PutUint32(b, crc32.Checksum(value, Castagnoli))
	return append(b, value...)
}

// unchecked is the value without its checksum, once that has been compared.
func Unseal(b []byte) ([]byte, error) {
	if len(b) < 4 || crc32.Checksum(b[4:], Castagnoli) != binary.BigEndian.Uint32(b) {
		return nil, ErrChecksum
	}
	return b[4:], nil
}
