package replication

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

	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// A snapshot is a stream: eight bytes that say what it is, records with length
// and CRC-32C before each, the last of which says how many there were, and a
// SHA-256 of all that came before. So neither damage nor a stream that ends
// early is taken for a smaller state, and nothing damaged is acted upon.

const (
	streamMagic = "cedesnp\x01" // the last byte is the format
	// maxRecord is more than any record holds that is written here.
	maxRecord = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SnapshotError says that a snapshot cannot be read. Nothing was changed.
type SnapshotError struct {
	What string
	Err  error // nil: What says it all
}

func (e *SnapshotError) Error() string {
	if e.Err == nil {
		return "snapshot: " + e.What
	}
	return fmt.Sprintf("snapshot: %s: %v", e.What, e.Err)
}

// Unwrap is what went wrong beneath.
func (e *SnapshotError) Unwrap() error { return e.Err }

// records writes records. It keeps the first error.
type records struct {
	out   *bufio.Writer
	sum   hash.Hash
	count uint64
	buf   []byte
	err   error
	head  [binary.MaxVarintLen64 + 4]byte
}

func newRecords(out io.Writer) *records {
	s := &records{sum: sha256.New()}
	s.out = bufio.NewWriterSize(io.MultiWriter(out, s.sum), 1<<16)
	_, s.err = s.out.WriteString(streamMagic)
	return s
}

func (s *records) write(m *pb.Record) {
	if s.err != nil {
		return
	}
	if s.buf, s.err = sorted.MarshalAppend(s.buf[:0], m); s.err != nil {
		return
	}
	s.count++
	n := binary.PutUvarint(s.head[:], uint64(len(s.buf)))
	binary.LittleEndian.PutUint32(s.head[n:], crc32.Checksum(s.buf, castagnoli))
	if _, s.err = s.out.Write(s.head[:n+4]); s.err == nil {
		_, s.err = s.out.Write(s.buf)
	}
}

// end writes the tail and the checksum.
func (s *records) end(out io.Writer) error {
	s.write(&pb.Record{Record: &pb.Record_Tail{Tail: &pb.SnapshotTail{Records: s.count}}})
	if s.err == nil {
		s.err = s.out.Flush()
	}
	if s.err == nil {
		_, s.err = out.Write(s.sum.Sum(nil))
	}
	return s.err
}

// readRecords calls each for every record but the tail, and then checks that
// the stream was whole. What each was told of a stream that turns out not to be
// is to be thrown away.
func readRecords(in io.Reader, take func(*pb.Record) error) error {
	sum := sha256.New()
	buffered := bufio.NewReaderSize(in, 1<<16)
	hashed := &hashedReader{in: buffered, sum: sum}
	var magic [len(streamMagic)]byte
	if _, err := io.ReadFull(hashed, magic[:]); err != nil {
		return &SnapshotError{"it ends within its first bytes", err}
	}
	switch {
	case string(magic[:7]) != streamMagic[:7]:
		return &SnapshotError{What: "these bytes are no snapshot of a cede server"}
	case magic[7] != streamMagic[7]:
		return &SnapshotError{What: fmt.Sprintf("it is of format %d and this server reads format %d: upgrade it", magic[7], streamMagic[7])}
	}
	var buf []byte
	for count := uint64(0); ; count++ {
		var err error
		if buf, err = readRecord(hashed, buf); err != nil {
			return &SnapshotError{fmt.Sprintf("record %d", count), err}
		}
		var m pb.Record
		if err := proto.Unmarshal(buf, &m); err != nil {
			return &SnapshotError{fmt.Sprintf("record %d is damaged", count), err}
		}
		if tail := m.GetTail(); tail != nil {
			if tail.Records != count {
				return &SnapshotError{What: fmt.Sprintf("%d records of %d", count, tail.Records)}
			}
			break
		}
		if m.Record == nil {
			return &SnapshotError{What: fmt.Sprintf("record %d is of a kind that this server does not know: upgrade it", count)}
		}
		if err := take(&m); err != nil {
			return &SnapshotError{fmt.Sprintf("record %d", count), err}
		}
	}
	var want [sha256.Size]byte
	if _, err := io.ReadFull(buffered, want[:]); err != nil {
		return &SnapshotError{"it ends before its checksum", unexpected(err)}
	}
	if got := sum.Sum(nil); string(got) != string(want[:]) {
		return &SnapshotError{What: "its checksum does not hold: it is damaged"}
	}
	if _, err := buffered.ReadByte(); !errors.Is(err, io.EOF) {
		return &SnapshotError{"it goes on behind its end", err}
	}
	return nil
}

// readRecord reads the bytes of a record into buf, which it makes larger where
// it must.
func readRecord(in *hashedReader, buf []byte) ([]byte, error) {
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return buf, unexpected(err)
	}
	if size > maxRecord {
		return buf, fmt.Errorf("%d bytes: a record has at most %d", size, maxRecord)
	}
	var crc [4]byte
	if _, err := io.ReadFull(in, crc[:]); err != nil {
		return buf, unexpected(err)
	}
	if uint64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if _, err := io.ReadFull(in, buf); err != nil {
		return buf, unexpected(err)
	}
	if crc32.Checksum(buf, castagnoli) != binary.LittleEndian.Uint32(crc[:]) {
		return buf, errors.New("its checksum does not hold: it is damaged")
	}
	return buf, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// hashedReader reads and sums up.
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
