package replication

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state"
)

// The versions of the meaning of log entries that this release understands. Releases
// are rolled out one after the other, so each understands what the one before it writes.
const (
	Oldest uint32 = 1
	Newest uint32 = 2
)

// Versions is a range of versions, both ends included.
type Versions struct{ Oldest, Newest uint32 }

// orOurs is v, or in place of nothing what this release understands.
func (v Versions) orOurs() Versions {
	if v == (Versions{}) {
		return Versions{Oldest, Newest}
	}
	return v
}

// Ours is what this release understands.
func Ours() Versions { return Versions{Oldest, Newest} }

func (v Versions) String() string { return fmt.Sprintf("%d to %d", v.Oldest, v.Newest) }

// tooNew is why a server must not go on with a state of a cluster's version; nil: it
// may. What it would not understand it would leave out, and have another state than the
// others from there on.
func (v Versions) tooNew(version uint32) error {
	if version <= v.Newest {
		return nil
	}
	return notUnderstood("the cluster is at version %d and this release understands versions %s: the cluster does not go back, so run the release that it ran before, or a later one",
		version, v)
}

// tooOld is why a server must not begin with a state of a cluster's version.
func (v Versions) tooOld(version uint32) error {
	if version == 0 || version >= v.Oldest { // 0: the cluster has no name yet
		return nil
	}
	return notUnderstood("the cluster is at version %d and this release understands versions %s: upgrade one release at a time, and wait until every server runs it",
		version, v)
}

// What a message of the log may hold follows from the version, by field: a server that
// does not know a field leaves it out, and makes another state of the entry than the
// others. versions/N.txt lists the fields of version N and is never changed once a release
// has it; all others are of the newest.

//go:embed versions/1.txt
var fieldsOf1 string

var fieldsByVersion = sync.OnceValue(func() map[uint32]map[protoreflect.FullName]bool {
	first := map[protoreflect.FullName]bool{}
	pkg := (&pb.Entry{}).ProtoReflect().Descriptor().ParentFile().Package()
	for name := range strings.FieldsSeq(fieldsOf1) {
		first[pkg+"."+protoreflect.FullName(name)] = true
	}
	return map[uint32]map[protoreflect.FullName]bool{1: first}
})

// workedOut are messages that servers fill in by themselves: what is new of them is left
// out until every server understands it. Of everything else somebody asked for it, and is
// refused.
var workedOut = []protoreflect.Name{
	"Evaluation", "Batch", "Plan", "CommitGroup", "Stop", "Eviction", "Claim", "Allocation", "Explanation", "NodeReason",
	"Assignment", "Withdrawal", "ClientUpdate", "AssignmentUpdate", "Node", "Device", "PolicyCheck", "Cluster",
}

// gate holds entries to what every server of the cluster understands.
type gate struct {
	known   map[protoreflect.FullName]bool
	refused []string
	changed bool
}

// unfit is the answer to entries that some server of the cluster would not understand; nil
// where all do, now that what they can do without is left out.
func (n *Node) unfit(parts []part) *Result {
	now := n.cfg.Store.Snapshot()
	refusal := n.fsm.version.fit(parts, now)
	if refusal == nil {
		return nil
	}
	return &Result{Index: now.Index(), Err: refusal}
}

// fit makes entries fit for a cluster at a version that is not our newest: what they hold
// beyond it is left out, or is why they are refused.
func (v Versions) fit(parts []part, sn *state.Snapshot) *Refusal {
	at := sn.Meta().Version
	known := fieldsByVersion()[at]
	if at >= Newest || known == nil {
		return nil
	}
	for i := range parts {
		var m pb.Entry
		if err := proto.Unmarshal(parts[i].data, &m); err != nil {
			panic("replication: an entry of ours: " + err.Error())
		}
		g := &gate{known: known}
		g.message(m.ProtoReflect())
		if len(g.refused) > 0 {
			slices.Sort(g.refused)
			return refuse(CodeConflict, "the cluster is at version %d and this needs version %d (%s): wait until every server runs the new release, which `cede operator raft` tells",
				at, Newest, strings.Join(slices.Compact(g.refused), ", "))
		}
		if g.changed {
			parts[i].data = mustMarshal(proto.MarshalOptions{}, &m)
		}
	}
	return nil
}

func (g *gate) message(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case g.known[f.FullName()] || f.ContainingMessage().IsMapEntry():
			g.value(f, v)
		case slices.Contains(workedOut, m.Descriptor().Name()):
			m.Clear(f)
			g.changed = true
		default:
			g.refused = append(g.refused, fmt.Sprintf("%s of %s", f.Name(), m.Descriptor().Name()))
		}
		return true
	})
}

func (g *gate) value(f protoreflect.FieldDescriptor, v protoreflect.Value) {
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
