package codec

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cede-scheduler/cede/core/replication"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// The fields that an entry may use depend on the cluster's version: a server that
// does not support a field ignores it, and derives another state from the entry than
// the other servers. versions/N.txt lists the fields of version N, and never
// changes once a release has that version. All other fields belong to the newest.

//go:embed versions/1.txt
var version1 string

//go:embed versions/2.txt
var version2 string

var fieldsByVersion = sync.OnceValue(func() map[uint32]map[protoreflect.FullName]bool {
	fields := map[uint32]map[protoreflect.FullName]bool{}
	pkg := (&pb.Entry{}).ProtoReflect().Descriptor().ParentFile().Package()
	for version, list := range map[uint32]string{1: version1, 2: version2} {
		fields[version] = map[protoreflect.FullName]bool{}
		for name := range strings.FieldsSeq(list) {
			fields[version][pkg+"."+protoreflect.FullName(name)] = true
		}
	}
	return fields
})

// computed lists messages that servers fill in without a request: their new fields
// are cleared until every server understands them. The fields of other messages
// were requested by a user, and cause a refusal.
var computed = []protoreflect.Name{
	"Evaluation", "Batch", "Plan", "CommitGroup", "Stop", "Eviction", "Claim", "Allocation", "Explanation", "NodeReason", "Observation",
	"Assignment", "Withdrawal", "ClientUpdate", "AssignmentUpdate", "Node", "Device", "PolicyCheck", "Cluster",
}

// FitVersion clears from encoded entries the computed fields that a cluster at this
// version does not understand. It returns a refusal if an entry has other such fields.
// It costs nothing while the cluster is at the newest version; otherwise every entry is
// decoded, and encoded again if it was changed. A computed field that is cleared has
// the value that an older server assumes, so all servers derive the same state.
func FitVersion(parts []Part, version uint32) *replication.Refusal {
	known := fieldsByVersion()[version]
	if version >= replication.Newest || known == nil {
		return nil
	}
	for i := range parts {
		var m pb.Entry
		if err := proto.Unmarshal(parts[i].Data, &m); err != nil {
			panic("replication: decode an encoded entry: " + err.Error())
		}
		g := &versionGate{known: known}
		g.message(m.ProtoReflect())
		if len(g.refused) > 0 {
			slices.Sort(g.refused)
			return replication.Refuse(replication.CodeConflict,
				"the cluster is at version %d and this requires version %d (%s): wait until every server runs the new release; `cede operator raft` shows their versions",
				version, replication.Newest, strings.Join(slices.Compact(g.refused), ", "))
		}
		if g.changed {
			parts[i].Data = marshal(proto.MarshalOptions{}, &m)
		}
	}
	return nil
}

// A versionGate walks a message and finds unsupported fields.
type versionGate struct {
	known   map[protoreflect.FullName]bool
	refused []string
	changed bool
}

// message clears or reports the unsupported fields of a message, and descends into the
// others. A field that is cleared is not visited further.
func (g *versionGate) message(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case g.known[f.FullName()] || f.ContainingMessage().IsMapEntry():
			g.value(f, v)
		case slices.Contains(computed, m.Descriptor().Name()):
			m.Clear(f)
			g.changed = true
		default:
			g.refused = append(g.refused, fmt.Sprintf("%s of %s", f.Name(), m.Descriptor().Name()))
		}
		return true
	})
}

// value visits the messages in a field. Scalars need no visit.
func (g *versionGate) value(f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case f.IsMap():
		if f.MapValue().Message() == nil {
			return
		}
		v.Map().Range(func(_ protoreflect.MapKey, each protoreflect.Value) bool {
			g.message(each.Message())
			return true
		})
	case f.Message() == nil:
	case f.IsList():
		for i := range v.List().Len() {
			g.message(v.List().Get(i).Message())
		}
	default:
		g.message(v.Message())
	}
}
