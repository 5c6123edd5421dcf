package replication

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state"
)

// What a version has is never taken away again: old entries are in logs.
func TestVersions_KeepTheirFields(t *testing.T) {
	there := map[protoreflect.FullName]bool{}
	messages := (&pb.Entry{}).ProtoReflect().Descriptor().ParentFile().Messages()
	for i := range messages.Len() {
		fields := messages.Get(i).Fields()
		for j := range fields.Len() {
			there[fields.Get(j).FullName()] = true
		}
	}
	for version, fields := range fieldsByVersion() {
		for name := range fields {
			if !there[name] {
				t.Errorf("version %d has field %s, which is gone", version, name)
			}
		}
		if len(fields) < 300 {
			t.Errorf("version %d has %d fields", version, len(fields))
		}
	}
	for v := Oldest; v < Newest; v++ {
		if fieldsByVersion()[v] == nil {
			t.Errorf("nobody knows which fields version %d has", v)
		}
	}
	for _, name := range workedOut {
		if messages.ByName(name) == nil {
			t.Errorf("there is no message %s", name)
		}
	}
}

// atVersion is a state of a cluster at a version.
func atVersion(v uint32) *state.Snapshot {
	store := state.New()
	txn := store.Begin(1)
	txn.SetMeta(state.Meta{ClusterID: "c", Version: v})
	return txn.Commit()
}

func TestVersions_WhatOthersDoNotUnderstandIsRefusedOrLeftOut(t *testing.T) {
	old := &Entry{Time: 1, Command: &RegisterJob{Job: countedJob("j", 1), Eval: &model.Evaluation{ID: "e"}}}
	binding := &Entry{Command: &StopBinding{Key: model.JobKey{Namespace: "default", ID: "b"}}}
	for _, c := range []struct {
		name    string
		at      uint32
		entry   *Entry
		refused string
	}{
		{"what the old version has", 1, old, ""},
		{"a kind of the new one", 1, binding, "stop_binding of Entry"},
		{"the same once all have it", Newest, binding, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := []part{{data: Encode(c.entry)}}
			was := slices.Clone(parts[0].data)
			refusal := Ours().fit(parts, atVersion(c.at))
			switch {
			case (refusal != nil) != (c.refused != ""):
				t.Fatalf("it is refused: %v", refusal)
			case refusal != nil && (refusal.Code != CodeConflict || !strings.Contains(refusal.Message, c.refused) ||
				!strings.Contains(refusal.Message, "wait until every server runs the new release")):
				t.Errorf("it says: %s: %s", refusal.Code, refusal.Message)
			case refusal == nil && !slices.Equal(was, parts[0].data):
				t.Error("it was changed")
			}
		})
	}
	// What is new of a message that servers make is left out.
	g := &gate{known: map[protoreflect.FullName]bool{"cede.replication.v1.Evaluation.id": true}}
	ev := &pb.Evaluation{Id: []byte("e"), Priority: 7}
	g.message(ev.ProtoReflect())
	if !g.changed || ev.Priority != 0 || string(ev.Id) != "e" || len(g.refused) > 0 {
		t.Errorf("%v is left, %v refused", ev, g.refused)
	}
}

// A server that cannot follow its cluster does not start, and says what to do.
func TestNode_RefusesClustersOfOtherVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, snaps := raft.NewInmemCommitTrackingStore(), raft.NewInmemSnapshotStore()
		open := func(v Versions) (*Node, error) {
			_, trans := raft.NewInmemTransport("s")
			return Open(Config{
				ServerID: "s", Log: disk, Stable: disk, Snapshots: snaps, Transport: trans, Store: state.New(), Versions: v,
			})
		}
		n, err := open(Versions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Bootstrap(raft.Server{ID: "s", Address: "s"}); err != nil {
			t.Fatal(err)
		}
		<-n.Leadership()
		do := func(c Command) {
			t.Helper()
			if r, err := n.Apply(t.Context(), &Entry{Command: c}); err != nil || r.Err != nil {
				t.Fatalf("%v, %+v", err, r)
			}
		}
		do(&Bootstrap{ClusterID: "c", Version: 1})
		if r, err := n.Apply(t.Context(), &Entry{Command: &StopBinding{}}); err != nil || r.Err == nil || r.Err.Code != CodeConflict {
			t.Errorf("an entry that others would not understand: %+v, %v", r, err)
		}
		do(&SetVersion{Newest})
		if err := n.TakeSnapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		for _, v := range []Versions{{1, Newest - 1}, {Newest + 1, Newest + 2}} {
			n, err := open(v)
			if err == nil {
				_ = n.Close()
			}
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), "the cluster is at version 2") {
				t.Errorf("with versions %s it starts: %v", v, err)
			}
		}
		if n, err = open(Versions{}); err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A server that is told of a version that it does not understand stops before it.
func TestFSM_StopsBeforeAVersionThatItDoesNotUnderstand(t *testing.T) {
	f := newFSM(&Config{Store: state.New(), Versions: Versions{1, 1}}, slog.New(slog.DiscardHandler))
	list := f.ApplyBatch([]*raft.Log{
		{Index: 1, Data: Encode(&Entry{Command: &Bootstrap{ClusterID: "c", Version: 1}})},
		{Index: 2, Data: Encode(&Entry{Command: &SetVersion{2}})},
	})
	if err, is := list[1].(error); !is || f.stopped() == nil || !strings.Contains(err.Error(), "the cluster is at version 2") {
		t.Errorf("it goes on: %v", list[1])
	}
	if f.store.Snapshot().Meta().Version != 1 {
		t.Error("it took the version over")
	}
}
