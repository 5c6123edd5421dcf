package codec

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// The fields of a version are never removed: old entries are in logs.
func TestVersions_KeepTheirFields(t *testing.T) {
	t.Parallel()
	existing := map[protoreflect.FullName]bool{}
	messages := (&pb.Entry{}).ProtoReflect().Descriptor().ParentFile().Messages()
	for i := range messages.Len() {
		fields := messages.Get(i).Fields()
		for j := range fields.Len() {
			existing[fields.Get(j).FullName()] = true
		}
	}
	for version, fields := range fieldsByVersion() {
		for name := range fields {
			if !existing[name] {
				t.Errorf("version %d has field %s, which no longer exists", version, name)
			}
		}
		if len(fields) < 300 {
			t.Errorf("version %d has %d fields", version, len(fields))
		}
	}
	for v := replication.Oldest; v < replication.Newest; v++ {
		if fieldsByVersion()[v] == nil {
			t.Errorf("the fields of version %d are not listed", v)
		}
	}
	for _, name := range computed {
		if messages.ByName(name) == nil {
			t.Errorf("message %s does not exist", name)
		}
	}
}

func job() *model.Job {
	return &model.Job{Namespace: "default", ID: "j", Meta: map[string]string{"n": "1"}, Groups: []*model.Group{{Name: "g"}}}
}

func TestFitVersion_RefusesOrClearsNewFields(t *testing.T) {
	t.Parallel()
	old := &replication.Entry{Time: 1, Command: &replication.RegisterJob{Job: job(), Eval: &model.Evaluation{ID: "e"}}}
	binding := &replication.Entry{Command: &replication.StopBinding{Key: model.JobKey{Namespace: "default", ID: "b"}}}
	disconnect := job()
	disconnect.Groups[0].Disconnect = &model.Disconnect{Replace: true}
	replaced := &replication.Entry{Time: 1, Command: &replication.RegisterJob{Job: disconnect}}
	for _, c := range []struct {
		name    string
		at      uint32
		entry   *replication.Entry
		refused string
	}{
		{"fields of the old version", 1, old, ""},
		{"a new command", 1, binding, "stop_binding of Entry"},
		{"a new command on a new cluster", replication.Newest, binding, ""},
		{"a new field of a job", 1, replaced, "disconnect of Group"},
		{"a new field of a job on a new cluster", 2, replaced, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := []Part{{Data: Encode(c.entry)}}
			before := slices.Clone(parts[0].Data)
			refusal := FitVersion(parts, c.at)
			switch {
			case (refusal != nil) != (c.refused != ""):
				t.Fatalf("refusal %v", refusal)
			case refusal != nil && (refusal.Code != replication.CodeConflict || !strings.Contains(refusal.Message, c.refused) ||
				!strings.Contains(refusal.Message, "wait until every server runs the new release")):
				t.Errorf("refusal %s: %s", refusal.Code, refusal.Message)
			case refusal == nil && !slices.Equal(before, parts[0].Data):
				t.Error("the entry was changed")
			}
		})
	}
	t.Run("the reason of a gang", func(t *testing.T) {
		e := &replication.Entry{Command: &replication.WriteEvals{Evals: []*model.Evaluation{{
			ID: "e", Failed: map[string]*model.Explanation{"g": {Nodes: 3, Exhausted: map[string]int{"cpu": 3}, Gang: "an attempt placed 1 of 2 instances"}},
		}}}}
		for version, want := range map[uint32]string{1: "", replication.Newest: "an attempt placed 1 of 2 instances"} {
			parts := []Part{{Data: Encode(e)}}
			if refusal := FitVersion(parts, version); refusal != nil {
				t.Fatal(refusal)
			}
			var m pb.Entry
			if err := proto.Unmarshal(parts[0].Data, &m); err != nil {
				t.Fatal(err)
			}
			if x := m.GetWriteEvals().Evals[0].Failed["g"]; x.Gang != want || x.Exhausted["cpu"] != 3 {
				t.Errorf("version %d: %v, want the reason %q", version, x, want)
			}
		}
	})
	t.Run("a new field of a computed message", func(t *testing.T) {
		g := &versionGate{known: map[protoreflect.FullName]bool{"cede.replication.v1.Evaluation.id": true}}
		ev := &pb.Evaluation{Id: []byte("e"), Priority: 7}
		g.message(ev.ProtoReflect())
		if !g.changed || ev.Priority != 0 || string(ev.Id) != "e" || len(g.refused) > 0 {
			t.Errorf("%v remains, %v refused", ev, g.refused)
		}
	})
}
