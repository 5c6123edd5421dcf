package codec_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func roundTrip(t rapid.TB, e *replication.Entry) {
	t.Helper()
	got, err := codec.Decode(codec.Encode(e))
	if err != nil {
		t.Fatalf("%T: %v", e.Command, err)
	}
	if diff := cmp.Diff(e, got, replicationtest.Equal); diff != "" {
		t.Fatalf("%T differs (-encoded +decoded):\n%s", e.Command, diff)
	}
}

// fullEntry returns an entry with every field set, so that a field which the codec
// omits is noticed.
func fullEntry(k replication.Kind) *replication.Entry {
	c := fullCommand(k)
	if r, ok := c.(*replication.RegisterJob); ok {
		for _, p := range r.Batch.Plans { // of another job than the registered one
			p.Plan.Job.ID = "other"
		}
	}
	return &replication.Entry{Time: 5, Key: "k", Hash: [32]byte{1, 31: 2}, Command: c}
}

func TestCodec_EncodesEveryFieldOfTheModel(t *testing.T) {
	t.Parallel()
	for _, k := range replication.Kinds() {
		t.Run(k.String(), func(t *testing.T) { roundTrip(t, fullEntry(k)) })
	}
}

func TestCodec_RoundTrip(t *testing.T) {
	t.Parallel()
	replicationtest.CheckProperty(t, 2, func(t *rapid.T) { roundTrip(t, drawEntry(t)) })
}

// Every command is a field of the entry message, and its kind is the field's
// number. A field without a command would be applied by no server.
func TestKinds_MatchTheEntryMessage(t *testing.T) {
	t.Parallel()
	fields := (&pb.Entry{}).ProtoReflect().Descriptor().Oneofs().ByName("command").Fields()
	want := map[int]bool{}
	for i := range fields.Len() {
		want[int(fields.Get(i).Number())] = true
	}
	got := map[int]bool{}
	for _, k := range replication.Kinds() {
		got[int(k)] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds differ from the fields of Entry (-message +kinds):\n%s", diff)
	}
}

// testdata/entries.golden holds an entry of each kind as the release before the
// first one encoded it, with every field set. The encoding of recorded entries must
// never change: they are in logs and snapshots. A new kind adds a line, which the
// test prints; existing lines are never edited.
func TestCodec_RecordedEntriesKeepTheirEncoding(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/entries.golden")
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[replication.Kind]bool{}
	for line := range strings.Lines(string(file)) {
		var kind int
		var name, text string
		if _, err := fmt.Sscan(line, &kind, &name, &text); err != nil {
			t.Fatal(err)
		}
		want, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		e, err := codec.Decode(want)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if k := replication.KindOf(e.Command); int(k) != kind || k.String() != name {
			t.Errorf("kind %d (%s) is decoded as %d (%s)", kind, name, k, k)
		}
		recorded[replication.KindOf(e.Command)] = true
		if !bytes.Equal(deterministic(t, codec.Encode(e)), want) {
			t.Errorf("%s is encoded differently", name)
		}
	}
	for _, k := range replication.Kinds() {
		if !recorded[k] {
			text := base64.StdEncoding.EncodeToString(deterministic(t, codec.Encode(fullEntry(k))))
			t.Errorf("add to testdata/entries.golden:\n%d %s %s", k, k, text)
		}
	}
}

// deterministic encodes an entry again with its maps in order.
func deterministic(t *testing.T, data []byte) []byte {
	t.Helper()
	var m pb.Entry
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	out, err := codec.Deterministic.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDecode_RejectsNewerAndDamagedEntries(t *testing.T) {
	t.Parallel()
	bootstrap := codec.Encode(&replication.Entry{Command: &replication.Bootstrap{ClusterID: "c"}})
	edit := func(change func(*pb.Entry)) []byte {
		var m pb.Entry
		if err := proto.Unmarshal(bootstrap, &m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		data, err := proto.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"newer format":          {edit(func(m *pb.Entry) { m.Format = 2 }), "has format 2"},
		"unknown command":       {edit(func(m *pb.Entry) { m.Command, m.Kind = nil, 99 }), "command 99, which this release does not support"},
		"kind of other command": {edit(func(m *pb.Entry) { m.Kind = 11 }), "has kind 11 and holds a command of kind 10"},
		"hash of wrong size":    {edit(func(m *pb.Entry) { m.Hash = []byte{1} }), "hash has 1 bytes"},
		"no protobuf":           {[]byte{0xff, 0xff}, "is damaged"},
	} {
		if _, err := codec.Decode(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want ...%s...", name, err, c.want)
		}
	}
}
