package history

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
)

// A Record is one decision or event.
type Record struct {
	Position
	Topic string
	Time  time.Time // time of the append
	Data  []byte
}

// A record is stored under its position and topic. A second key without a value, the topic
// key, starts with the topic.
const (
	positionSize = 16
	recordHeader = 8
	// recordExtra approximates Badger's overhead for the two keys of a record, in bytes.
	recordExtra = 48
)

// appendPosition appends a position in big-endian form, so that keys sort by position.
func appendPosition(b []byte, p Position) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, p.Index), p.Seq)
}

// positionAt decodes the position at the start of b.
func positionAt(b []byte) Position {
	return Position{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// recordKey returns the primary key of a record: prefix, position, topic.
func recordKey(p Position, topic string) []byte {
	b := make([]byte, 0, 1+positionSize+len(topic))
	return append(appendPosition(append(b, kvstore.RecordPrefix), p), topic...)
}

// parseRecordKey splits a primary key into position and topic.
func parseRecordKey(key []byte) (p Position, topic string, err error) {
	if len(key) <= 1+positionSize {
		return p, "", fmt.Errorf("key of %d bytes among the records", len(key))
	}
	return positionAt(key[1:]), string(key[1+positionSize:]), nil
}

// topicKeys returns the prefix of all topic keys of a topic.
func topicKeys(topic string) []byte {
	return append([]byte{kvstore.TopicPrefix, byte(len(topic))}, topic...)
}

// topicKey returns the topic key of a record: prefix, length of the topic, topic, position.
// The length separates topics of which one is a prefix of another.
func topicKey(topic string, p Position) []byte { return appendPosition(topicKeys(topic), p) }

// encodeRecord returns the stored value: checksum, time in ns, data.
func encodeRecord(r *Record, now int64) []byte {
	at := now
	if !r.Time.IsZero() {
		at = r.Time.UnixNano()
	}
	b := make([]byte, 0, recordHeader+len(r.Data))
	b = append(binary.BigEndian.AppendUint64(b, uint64(at)), r.Data...)
	return badgerdb.Seal(b)
}

// decodeRecord verifies a value and returns the record of the given primary key.
func decodeRecord(key, value []byte) (Record, error) {
	p, topic, err := parseRecordKey(key)
	if err != nil {
		return Record{}, err
	}
	b, err := badgerdb.Unseal(value)
	if err == nil && len(b) < recordHeader {
		err = badgerdb.ErrChecksum
	}
	if err != nil {
		return Record{}, fmt.Errorf("record %d.%d of %s: %w", p.Index, p.Seq, topic, err)
	}
	r := Record{Position: p, Topic: topic, Time: time.Unix(0, int64(binary.BigEndian.Uint64(b)))}
	r.Data = b[recordHeader:]
	return r, nil
}
