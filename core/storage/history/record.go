package history

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
)

// Record is one thing that happened.
type Record struct {
	Position
	Topic string
	Time  time.Time // when it was appended
	Data  []byte
}

// A record lies under its position and topic. A second key, without a value,
// has the topic first.
const (
	positionSize = 16
	recordHeader = 8
	// recordExtra is about what Badger adds to the two keys of a record.
	recordExtra = 48
)

func appendPosition(b []byte, p Position) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, p.Index), p.Seq)
}

func positionAt(b []byte) Position {
	return Position{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func recordKey(p Position, topic string) []byte {
	b := make([]byte, 0, 1+positionSize+len(topic))
	return append(appendPosition(append(b, kvstore.RecordPrefix), p), topic...)
}

// parseRecordKey takes the key of a record apart.
func parseRecordKey(key []byte) (p Position, topic string, err error) {
	if len(key) <= 1+positionSize {
		return p, "", fmt.Errorf("a key of %d bytes lies among the records", len(key))
	}
	return positionAt(key[1:]), string(key[1+positionSize:]), nil
}

// topicKeys is what the keys of a topic begin with.
func topicKeys(topic string) []byte {
	return append([]byte{kvstore.TopicPrefix, byte(len(topic))}, topic...)
}

func topicKey(topic string, p Position) []byte { return appendPosition(topicKeys(topic), p) }

func encodeRecord(r *Record, now int64) []byte {
	at := now
	if !r.Time.IsZero() {
		at = r.Time.UnixNano()
	}
	b := make([]byte, 0, recordHeader+len(r.Data))
	b = append(binary.BigEndian.AppendUint64(b, uint64(at)), r.Data...)
	return badgerdb.Seal(b)
}

// decodeRecord checks a value and makes the record of it that key names.
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
