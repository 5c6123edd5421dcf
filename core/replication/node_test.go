package replication

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func TestLeadership_TellsOfEveryLossOfWhatItTold(t *testing.T) {
	for _, c := range []struct{ told, pushed, want string }{
		{"", "t", "t"},
		{"", "tf", ""},
		{"", "tft", "t"},
		{"t", "f", "f"},
		{"t", "ft", "ft"},
		{"t", "ftf", "f"},
		{"t", "ftft", "ft"},
		{"t", "t", ""},
		{"", "f", ""},
	} {
		l := &leadership{told: c.told == "t"}
		for _, b := range c.pushed {
			l.push(b == 't')
		}
		got := ""
		for len(l.pending) > 0 {
			l.pop()
			got += map[bool]string{true: "t", false: "f"}[l.told]
		}
		if got != c.want {
			t.Errorf("told %q, then %q: tells %q, want %q", c.told, c.pushed, got, c.want)
		}
	}
}

func TestNode_TheLeaderIsToldAndOthersSayWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 3)
		defer c.close()
		lead := c.leader()
		if leads := <-lead.node.Leadership(); !leads {
			t.Error("the leader is not told")
		}
		e := &Entry{Command: &Bootstrap{ClusterID: "x"}}
		for _, m := range c.members {
			if m == lead {
				continue
			}
			_, err := m.node.Apply(t.Context(), e)
			var hint *LeaderError
			if !errors.Is(err, ErrNotLeader) || !errors.As(err, &hint) || hint.ID != lead.id {
				t.Errorf("%s: %v", m.id, err)
			}
			if err := m.node.Barrier(t.Context()); !errors.Is(err, ErrNotLeader) {
				t.Errorf("barrier: %v", err)
			}
			if err := m.node.VerifyLeader(t.Context()); !errors.Is(err, ErrNotLeader) {
				t.Errorf("verify: %v", err)
			}
			if err := m.node.RestoreSnapshot(t.Context(), strings.NewReader("")); !errors.Is(err, ErrNotLeader) {
				t.Errorf("restore: %v", err)
			}
		}
		result, err := lead.node.Apply(t.Context(), e)
		if err != nil || result.Index != lead.store.Snapshot().Index() {
			t.Errorf("result %+v, %v", result, err)
		}
		s := lead.node.Stats()
		if s.State != "Leader" || s.Term == 0 || s.StateIndex != result.Index || len(s.Servers) != 3 {
			t.Errorf("stats %+v", s)
		}
		if err := lead.node.Transfer(t.Context()); err != nil {
			t.Error(err)
		}
		if leads := <-lead.node.Leadership(); leads {
			t.Error("who hands over is told")
		}
		next := c.leader()
		if next == lead {
			t.Error("the leadership was not handed over")
		}
		told := next.node.Leadership()
		c.halt(next)
		for range told { // what was not taken yet, and then the end
		}
	})
}

// Who belongs to the cluster is known after a restart of all, with and without
// a snapshot.
func TestNode_RestartOfAllServersForgetsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 8, 3)
		defer c.close()
		for round := range 3 {
			for n := range 10 {
				c.send(&Entry{Command: &RegisterJob{Job: countedJob("j", n+round)}})
			}
			c.settle()
			for _, m := range c.members {
				c.halt(m)
			}
			for _, m := range c.members {
				c.start(m)
				if s := m.node.Stats(); len(s.Servers) != 3 {
					t.Fatalf("round %d: %s knows of %v", round, m.id, s.Servers)
				}
			}
			if err := c.leader().node.TakeSnapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		c.settle()
	})
}

// A server that is cut off keeps what it is asked for to itself, and says that
// it does not know.
func TestNode_OutcomeIsUnknownWithoutAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 3)
		defer c.close()
		lead := c.leader()
		c.cut(true, lead)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := lead.node.Apply(ctx, &Entry{Command: &SetVersion{1}})
		if !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a deadline: %v", err)
		}
		_, err = lead.node.Apply(t.Context(), &Entry{Command: &SetVersion{2}})
		if !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("until the leadership is lost: %v", err)
		}
		if r := c.send(&Entry{Command: &Bootstrap{ClusterID: "of the others"}}); r.Err != nil {
			t.Error(r.Err)
		}
		c.cut(false, lead)
		c.settle()
		if v := lead.store.Snapshot().Meta().Version; v != 0 {
			t.Errorf("an entry that no majority had is in the state: %d", v)
		}
	})
}

func TestNode_SnapshotOfOneClusterIsRestoredInAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newCluster(t, 3, 1)
		defer from.close()
		module := []byte("module")
		v := versionWith(module, "v1")
		for _, command := range []Command{
			&Bootstrap{ClusterID: "old", Version: 1}, &RegisterJob{Job: webJob(50), Eval: evalOf("e1", webKey)},
			&PutChunk{Digest: v.Digest, Data: module}, &LoadPolicy{v},
		} {
			from.send(&Entry{Command: command})
		}
		var file bytes.Buffer
		if err := from.leader().node.SaveSnapshot(t.Context(), &file); err != nil {
			t.Fatal(err)
		}
		info, err := InspectSnapshot(bytes.NewReader(file.Bytes()))
		if err != nil || info.ClusterID != "old" || info.Jobs != 1 || info.Evals != 1 || info.Mods != 1 || info.Bytes != int64(file.Len()) {
			t.Fatalf("info %+v, %v", info, err)
		}

		to := newCluster(t, 4, 3)
		defer to.close()
		for n := range 20 {
			to.send(&Entry{Command: &RegisterJob{Job: countedJob("other", n)}})
		}
		lead := to.leader()
		damaged := bytes.Clone(file.Bytes())
		damaged[len(damaged)/2] ^= 1
		if err := lead.node.RestoreSnapshot(t.Context(), bytes.NewReader(damaged)); err == nil {
			t.Fatal("a damaged file was restored")
		}
		before := lead.store.Snapshot().Index()
		if err := lead.node.RestoreSnapshot(t.Context(), bytes.NewReader(file.Bytes())); err != nil {
			t.Fatal(err)
		}
		to.settle()
		for _, m := range to.members {
			sn := m.store.Snapshot()
			if sn.Job(webKey) == nil || sn.Meta().ClusterID != "old" || sn.Index() <= before {
				t.Errorf("%s: job %v of cluster %s at %d, before at %d", m.id, sn.Job(webKey), sn.Meta().ClusterID, sn.Index(), before)
			}
			if got, err := m.keeps.Get(v.Digest); err != nil || !bytes.Equal(got, module) {
				t.Errorf("%s has no module: %v", m.id, err)
			}
		}
		for _, m := range to.members { // and it is there after a restart
			to.halt(m)
			to.start(m)
		}
		to.settle()
	})
}

// A server that starts with far more entries in its log than Raft can queue
// comes up all the same.
func TestNode_StartsWithALongLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 5, 1)
		defer c.close()
		m := c.members[0]
		c.halt(m)
		last, err := m.disk.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		data := Encode(&Entry{Command: &SetVersion{1}})
		const entries = 200 * maxAppend
		logs := make([]*raft.Log, 0, entries)
		for i := range uint64(entries) {
			logs = append(logs, &raft.Log{Index: last + 1 + i, Term: 1, Type: raft.LogCommand, Data: data})
		}
		if err := errors.Join(m.disk.StageCommitIndex(last+entries), m.disk.StoreLogs(logs)); err != nil {
			t.Fatal(err)
		}
		c.start(m)
		c.leader()
		if err := m.node.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := m.store.Snapshot().Index(); at != last+entries {
			t.Errorf("the state is at %d, the log at %d", at, last+entries)
		}
	})
}

func TestNode_StopsWhenItCannotApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 6, 1)
		defer c.close()
		m := c.leader()
		future := m.node.Raft().Apply([]byte{0xff}, time.Second)
		if err := future.Error(); err != nil {
			t.Fatal(err)
		}
		<-m.node.Done()
		synctest.Wait()
		time.Sleep(time.Second)
		if m.node.Err() == nil || m.node.IsLeader() {
			t.Errorf("it goes on: %v", m.node.Err())
		}
		if _, err := m.node.Apply(t.Context(), &Entry{Command: &SetVersion{1}}); err == nil {
			t.Error("it still takes entries")
		}
	})
}

func TestNode_LargeEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 7, 1)
		defer c.close()
		m := c.leader()
		wide := webJob(50)
		wide.Meta = map[string]string{"k": strings.Repeat("x", MaxEntry)}
		if _, err := m.node.Apply(t.Context(), &Entry{Command: &RegisterJob{Job: wide}}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a large job: %v", err)
		}
		b := largeBatch(t, c, m, 100, 100)
		result, err := m.node.Apply(t.Context(), &Entry{Command: &ApplyPlans{b}})
		if err != nil || len(result.Dropped) != 1 || result.Dropped[0] != (apply.DroppedGroup{Plan: 1, Group: 99}) {
			t.Fatalf("dropped %+v, %v", result, err)
		}
		sn := m.store.Snapshot()
		if want := 2*100*100 - 100; sn.AllocCount() != want {
			t.Errorf("%d allocations, want %d", sn.AllocCount(), want)
		}
		evals := &WriteEvals{}
		for i := range 12_000 {
			evals.Evals = append(evals.Evals, evalOf(uuid(9, i), webKey))
		}
		before := sn.Index()
		result, err = m.node.Apply(t.Context(), &Entry{Command: evals})
		if err != nil || len(result.Evals) != len(evals.Evals) || result.Index < before+2 {
			t.Errorf("%d evaluations at %d after %d, %v", len(result.Evals), result.Index, before, err)
		}
		gang := largeBatch(t, c, m, 1, 25_000)
		if _, err := m.node.Apply(t.Context(), &Entry{Command: &ApplyPlans{gang}}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a gang that is too large: %v", err)
		}
	})
}

// largeBatch has two plans of so many groups with so many placements each, all
// of a group on one node; the last wants a node that is not there.
func largeBatch(t *testing.T, c *cluster, m *member, groups, each int) *apply.Batch {
	t.Helper()
	nodes := &RegisterNodes{}
	for g := range groups {
		nodes.Nodes = append(nodes.Nodes, nodeOf(fmt.Sprint("node", g)))
	}
	c.send(&Entry{Command: nodes})
	c.send(&Entry{Command: &RegisterJob{Job: countedJob("large", groups)}})
	j := m.store.Snapshot().Job(model.JobKey{Namespace: "default", ID: "large"})
	b := &apply.Batch{}
	for p := range 2 {
		plan := &model.Plan{EvalID: fmt.Sprint("e", p), Job: j.Key()}
		bp := apply.BatchPlan{Plan: plan}
		for g := range groups {
			var cg model.CommitGroup
			for i := range each {
				cg.Placements = append(cg.Placements, &model.Allocation{
					ID: fmt.Sprintf("%08x-%04x-4000-8000-%012x", p, g, i), Job: j, Group: j.Groups[0], NodeID: fmt.Sprint("node", g),
				})
			}
			plan.Groups = append(plan.Groups, cg)
			bp.Groups = append(bp.Groups, g)
		}
		b.Plans = append(b.Plans, bp)
	}
	for _, a := range b.Plans[1].Plan.Groups[groups-1].Placements {
		a.NodeID = "nowhere"
	}
	return b
}

// Commit groups that touch a node in common stay in one entry.
func TestSplit_KeepsTogetherWhatLeansOnEachOther(t *testing.T) {
	s := withJob(t)
	j := s.store.Snapshot().Job(webKey)
	s.done(t, &ApplyPlans{planFor(j, placing(j, "old", "n1"))})
	b := planFor(j,
		placing(j, "a", "x"), placing(j, "b", "y"), placing(j, "c", "n1"), placing(j, "d", "x"),
		model.CommitGroup{Stops: []model.Stop{{AllocID: "old"}}}, placing(j, "e", "y"))
	got := fmt.Sprint(connected(b, s.store.Snapshot()))
	if want := "[[{0 0} {0 3}] [{0 1} {0 5}] [{0 2} {0 4}]]"; got != want {
		t.Errorf("sets %s, want %s", got, want)
	}
}

func TestRaftLogger_SpeaksOurWay(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	l := raftLogger(log)
	l.Debug("left out")
	l.Warn("failed to contact", "server-id", "s1", "error", io.EOF, "list", hclog.Fmt("%d-%d", 1, 2))
	line := out.String()
	for _, want := range []string{"level=WARN", "msg=raft", `event="failed to contact"`, "server_id=s1", "err=EOF", "list=1-2"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %q", want, line)
		}
	}
	if strings.Contains(line, "left out") {
		t.Error("debug lines are logged at level info")
	}
	out.Reset()
	l.Warn("skipping application of old log", "index", uint64(0)) // at the start of every new server
	l.Warn("skipping application of old log", "index", uint64(7))
	if lines := out.String(); strings.Count(lines, "level=WARN") != 1 || !strings.Contains(lines, "index=7") {
		t.Errorf("of what is skipped is said:\n%s", lines)
	}
}

func TestTiming_Defaults(t *testing.T) {
	v := reflect.ValueOf(Timing{}.defaults())
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s has no default", v.Type().Field(i).Name)
		}
	}
	if err := raft.ValidateConfig(func() *raft.Config { c := Timing{}.raft(); c.LocalID = "x"; return c }()); err != nil {
		t.Error(err)
	}
}

// slowLog is a log on a disk that writes when it is told to.
type slowLog struct {
	*raft.InmemStore
	gate   chan struct{}
	writes int
}

func (s *slowLog) StoreLogs(logs []*raft.Log) error {
	<-s.gate
	s.writes++
	return s.InmemStore.StoreLogs(logs)
}

// What is proposed while the disk is busy is written at once afterwards.
func TestNode_WritesManyEntriesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowLog{InmemStore: raft.NewInmemStore(), gate: make(chan struct{}, 1000)}
		for range 2 { // the configuration, and the first word of the leader
			disk.gate <- struct{}{}
		}
		_, trans := raft.NewInmemTransport("s")
		node, err := Open(Config{
			ServerID: "s", Log: disk, Stable: disk.InmemStore, Snapshots: raft.NewInmemSnapshotStore(), Transport: trans, Store: state.New(),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := node.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := node.Bootstrap(raft.Server{ID: "s", Address: "s"}); err != nil {
			t.Fatal(err)
		}
		<-node.Leadership()
		const entries = 100
		results := make(chan error, entries)
		for range entries {
			go func() {
				_, err := node.Apply(t.Context(), &Entry{Command: &SetVersion{1}})
				results <- err
			}()
		}
		synctest.Wait()
		for range entries {
			disk.gate <- struct{}{}
		}
		for range entries {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if disk.writes > 8 {
			t.Errorf("%d entries were written in %d writes", entries, disk.writes)
		}
	})
}
