package codec

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cede-scheduler/cede/core/replication"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// format is the format of entries. A server reads its own and the previous one. It
// changes only if a release cannot read the messages of the one before; new fields and
// commands are compatible (version_gate.go).
const format = 1

// Encode encodes an entry. A plan's job versions are encoded as references to the
// state, so that a plan must not contain versions that are not in the state. The entry
// is not modified. Encoding is not deterministic across releases of protobuf, so
// entries are never compared by their bytes.
func Encode(e *replication.Entry) []byte {
	return marshal(proto.MarshalOptions{}, message(e))
}

// message returns an entry as a message. Kind repeats the number of the command's
// field, so that a server that does not have the field can report it.
func message(e *replication.Entry) *pb.Entry {
	kind := replication.KindOf(e.Command)
	m := &pb.Entry{Format: format, Time: e.Time, Key: Text(e.Key), Hash: HashBytes(&e.Hash), Kind: uint32(kind)}
	var enc Encoder
	m.Audit = enc.AuditRecord(e.Audit)
	command := commands.Of(e.Command).encode(&enc, e.Command)
	m.ProtoReflect().Set(commandField(kind), protoreflect.ValueOfMessage(command.ProtoReflect()))
	return m
}

// commandField returns the field of an entry that holds a kind of command: its
// number is the kind's.
func commandField(k replication.Kind) protoreflect.FieldDescriptor {
	return entryFields.ByNumber(protoreflect.FieldNumber(k))
}

var (
	entryFields  = (&pb.Entry{}).ProtoReflect().Descriptor().Fields()
	entryCommand = (&pb.Entry{}).ProtoReflect().Descriptor().Oneofs().ByName("command")
)

// Decode decodes an entry. Its job versions are references until fsm or BindPlan
// resolves them. It returns a *replication.FormatError if the entry was written
// by a newer release, or is damaged.
func Decode(b []byte) (*replication.Entry, error) {
	var m pb.Entry
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, replication.FormatErrorf("log entry is damaged: %v", err)
	}
	if m.Format != format {
		return nil, replication.FormatErrorf("log entry has format %d and this release reads format %d: upgrade the server", m.Format, format)
	}
	if m.Command == nil {
		return nil, replication.FormatErrorf("log entry has command %d, which this release does not support: upgrade the server", m.Kind)
	}
	held := m.ProtoReflect().WhichOneof(entryCommand)
	kind := replication.Kind(held.Number())
	if uint32(kind) != m.Kind {
		return nil, replication.FormatErrorf("log entry has kind %d and holds a command of kind %d", m.Kind, kind)
	}
	command, ok := commands.Lookup(kind)
	if !ok {
		return nil, replication.FormatErrorf("log entry has command %d, which this release does not support: upgrade the server", m.Kind)
	}
	var d Decoder
	e := &replication.Entry{
		Time: m.Time, Key: m.Key, Hash: d.hash(m.Hash),
		Command: command.decode(&d, m.ProtoReflect().Get(held).Message().Interface()),
		Audit:   d.AuditRecord(m.Audit),
	}
	if d.err != nil {
		return nil, replication.FormatErrorf("log entry of kind %d: %v", m.Kind, d.err)
	}
	return e, nil
}
