package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/replication/codec"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// A stream is the magic number, then records, then a SHA-256 checksum of all bytes before it:
//
//	record = length (uvarint) | CRC-32C of the message (4 bytes) | protobuf message
//
// The CRC locates damage to one record; the checksum and the number of records in the
// tail detect missing and reordered records.
const (
	magic = "cedesnp\x01" // the last byte is the format
	// maxRecord is larger than any record that Write produces. It bounds the memory
	// that a damaged length can claim.
	maxRecord = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An Error means that a stream cannot be read. Nothing was changed. The message
// continues "snapshot:", so the text reads as its continuation.
type Error struct {
	What string
	Err  error // nil: What is the whole reason
}

// Error returns the message.
func (e *Error) Error() string {
	if e.Err == nil {
		return "snapshot: " + e.What
	}
	return fmt.Sprintf("snapshot: %s: %v", e.What, e.Err)
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// A recordWriter writes records. It stores the first error, and ignores later
// records.
type recordWriter struct {
	out   *bufio.Writer
	sum   hash.Hash
	count uint64
	buf   []byte
	err   error
	head  [binary.MaxVarintLen64 + 4]byte
}

// newRecordWriter starts a stream. Bytes are hashed as they leave the buffer, so that
// the hash covers exactly the bytes that were written.
func newRecordWriter(out io.Writer) *recordWriter {
	w := &recordWriter{sum: sha256.New()}
	w.out = bufio.NewWriterSize(io.MultiWriter(out, w.sum), 1<<16)
	_, w.err = w.out.WriteString(magic)
	return w
}

// write appends a record. The encoding is deterministic, because servers compare
// hashes of their states.
func (w *recordWriter) write(m *pb.Record) {
	if w.err != nil {
		return
	}
	if w.buf, w.err = codec.Deterministic.MarshalAppend(w.buf[:0], m); w.err != nil {
		return
	}
	w.count++
	n := binary.PutUvarint(w.head[:], uint64(len(w.buf)))
	binary.LittleEndian.PutUint32(w.head[n:], crc32.Checksum(w.buf, castagnoli))
	if _, w.err = w.out.Write(w.head[:n+4]); w.err == nil {
		_, w.err = w.out.Write(w.buf)
	}
}

// end writes the number of records and the checksum. out is the writer of the stream
// without the hash, which must not cover itself.
func (w *recordWriter) end(out io.Writer) error {
	w.write(&pb.Record{Record: &pb.Record_Tail{Tail: &pb.SnapshotTail{Records: w.count}}})
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err == nil {
		_, w.err = out.Write(w.sum.Sum(nil))
	}
	return w.err
}

// readRecords calls read for every record but the last, then verifies the stream. The
// checksum is known only at the end: if it returns an error, the caller must discard
// what it has read.
func readRecords(in io.Reader, read func(*pb.Record) error) error {
	sum := sha256.New()
	buffered := bufio.NewReaderSize(in, 1<<16)
	hashed := &hashedReader{in: buffered, sum: sum}
	if err := readMagic(hashed); err != nil {
		return err
	}
	var buf []byte
	for count := uint64(0); ; count++ {
		var err error
		if buf, err = readRecord(hashed, buf); err != nil {
			return &Error{fmt.Sprintf("record %d", count), err}
		}
		var m pb.Record
		if err := proto.Unmarshal(buf, &m); err != nil {
			return &Error{fmt.Sprintf("record %d is damaged", count), err}
		}
		if tail := m.GetTail(); tail != nil {
			if tail.Records != count {
				return &Error{What: fmt.Sprintf("it has %d records instead of %d", count, tail.Records)}
			}
			break
		}
		if m.Record == nil {
			return &Error{What: fmt.Sprintf("record %d has a type that this release does not support: upgrade the server", count)}
		}
		if err := read(&m); err != nil {
			return &Error{fmt.Sprintf("record %d", count), err}
		}
	}
	var want [sha256.Size]byte
	if _, err := io.ReadFull(buffered, want[:]); err != nil {
		return &Error{"it ends before its checksum", unexpectedEOF(err)}
	}
	if got := sum.Sum(nil); string(got) != string(want[:]) {
		return &Error{What: "checksum mismatch: it is damaged"}
	}
	if _, err := buffered.ReadByte(); !errors.Is(err, io.EOF) {
		return &Error{"it continues after its end", err}
	}
	return nil
}

// readMagic checks the magic number. It distinguishes another format from another
// kind of file, because the remedy differs.
func readMagic(in io.Reader) error {
	const version = len(magic) - 1
	var got [len(magic)]byte
	if _, err := io.ReadFull(in, got[:]); err != nil {
		return &Error{"file is truncated", err}
	}
	switch {
	case string(got[:version]) != magic[:version]:
		return &Error{What: "not a snapshot of a cede server"}
	case got[version] != magic[version]:
		return &Error{What: fmt.Sprintf("it has format %d and this release reads format %d: upgrade the server", got[version], magic[version])}
	}
	return nil
}

// IsSnapshot reports whether in begins as a snapshot does, of this format or another.
func IsSnapshot(in io.Reader) bool {
	got := make([]byte, len(magic)-1)
	_, err := io.ReadFull(in, got)
	return err == nil && string(got) == magic[:len(got)]
}

// readRecord reads the bytes of a record into buf, which it grows if necessary. A
// record larger than maxRecord is refused before memory is allocated for it.
func readRecord(in *hashedReader, buf []byte) ([]byte, error) {
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return buf, unexpectedEOF(err)
	}
	if size > maxRecord {
		return buf, fmt.Errorf("it has %d bytes, the limit is %d", size, maxRecord)
	}
	var crc [4]byte
	if _, err := io.ReadFull(in, crc[:]); err != nil {
		return buf, unexpectedEOF(err)
	}
	if uint64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if _, err := io.ReadFull(in, buf); err != nil {
		return buf, unexpectedEOF(err)
	}
	if crc32.Checksum(buf, castagnoli) != binary.LittleEndian.Uint32(crc[:]) {
		return buf, errors.New("checksum mismatch: it is damaged")
	}
	return buf, nil
}

// unexpectedEOF returns io.ErrUnexpectedEOF for io.EOF: a stream must end with its
// checksum.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A hashedReader adds all bytes that are read to a checksum. The buffer is below it, so
// that bytes read ahead are not hashed.
type hashedReader struct {
	in  *bufio.Reader
	sum hash.Hash
	one [1]byte
}

func (r *hashedReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.sum.Write(p[:n])
	return n, err
}

func (r *hashedReader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.one[0] = b
		r.sum.Write(r.one[:])
	}
	return b, err
}
