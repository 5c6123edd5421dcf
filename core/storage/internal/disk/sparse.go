package disk

import (
	"bytes"
	"errors"
	"os"
)

// CopySparse copies a file and keeps its holes. Badger preallocates its journals, so
// most of a journal is a hole. It fails if to exists. A file that grows meanwhile is
// copied up to its size at the start.
func CopySparse(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	block, zero := make([]byte, 1<<16), make([]byte, 1<<16)
	for at := NextData(in, 0, info.Size()); at < info.Size(); at = NextData(in, at, info.Size()) {
		n, err := in.ReadAt(block, at)
		if n == 0 && err != nil {
			return err
		}
		// Blocks of zeros become holes even if the source has none.
		if !bytes.Equal(block[:n], zero[:n]) {
			if _, err := out.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return out.Truncate(info.Size())
}
