// Package checkedfile owns small text files that carry their own checksum: identity
// files, secrets and records of an agent. The last line of such a file is the CRC32C
// of everything before it.
//
// It does not interpret the content. Files without a checksum are returned as
// unchecked, because earlier releases and operators write them; the caller decides
// whether other data confirms the content.
//
// Different paths may be written concurrently; callers serialize the writes of one path.
package checkedfile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"regexp"
	"strconv"

	"github.com/cede-scheduler/cede/core/internal/atomicfile"
)

// ErrChecksum means that the content of a file does not match its checksum.
var ErrChecksum = errors.New("checksum mismatch")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// trailer is the last line of a checked file.
var trailer = regexp.MustCompile(`^crc32c [0-9a-f]{8}$`)

// Write replaces the file at path with content, to which it appends a line feed if there
// is none, and the checksum. It is atomic and durable; see atomicfile.Write.
func Write(path string, content []byte, mode fs.FileMode) error {
	return atomicfile.Write(path, Encode(content), mode)
}

// Encode returns the text of a file with the given content.
func Encode(content []byte) []byte {
	b := append(make([]byte, 0, len(content)+len("\ncrc32c 00000000\n")), content...)
	if !bytes.HasSuffix(b, []byte("\n")) {
		b = append(b, '\n')
	}
	return append(b, Line(b)...)
}

// Line returns the checksum line of a text.
func Line(text []byte) string {
	return fmt.Sprintf("crc32c %08x\n", crc32.Checksum(text, castagnoli))
}

// Read returns the content of the file at path without its checksum. checked is false if
// the file has none. It returns ErrChecksum if content and checksum do not match.
func Read(path string) (content []byte, checked bool, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, false, err
	}
	return Decode(b)
}

// Decode splits the text of a file into its content and its checksum; see Read.
func Decode(b []byte) (content []byte, checked bool, err error) {
	text := bytes.TrimSuffix(b, []byte("\n"))
	at := bytes.LastIndexByte(text, '\n') + 1
	if !trailer.Match(text[at:]) {
		return b, false, nil
	}
	want, err := strconv.ParseUint(string(text[len(text)-8:]), 16, 32)
	if err != nil || uint64(crc32.Checksum(b[:at], castagnoli)) != want {
		return nil, true, ErrChecksum
	}
	return b[:at], true, nil
}
