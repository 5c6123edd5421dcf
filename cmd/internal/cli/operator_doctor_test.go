package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/doctor"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

// stoppedServer returns a data directory with a few entries and records.
func stoppedServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := storage.Open(storage.Config{Dir: dir, Log: raftlog.Config{MinFree: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ServerID(func() string { return "server-1" }); err != nil { // before there are entries
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("module"), 1000)
	digest := blob.Digest(data)
	err = errors.Join(
		s.Log().StoreLogs([]*raft.Log{{Index: 1, Term: 1}, {Index: 2, Term: 1}, {Index: 3, Term: 2}}),
		s.Blobs().PutChunk(digest, 0, data), s.Blobs().Finish(digest, int64(len(data))),
		s.History().Append("event", 2, 0, []byte("x")),
		s.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func doctorOf(t *testing.T, args ...string) (stdout, stderr string, code cmdutil.Exit) {
	t.Helper()
	w := clitest.New(nil, append([]string{"operator", "doctor"}, args...)...)
	code = runEnv(t, w)
	return w.Out.String(), w.Err.String(), code
}

func TestDoctor_ReportsContents(t *testing.T) {
	dir := stoppedServer(t)
	out, errs, code := doctorOf(t, dir)
	if code != cmdutil.ExitOK || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	for _, want := range []string{"server-1", "entries 1 to 3, term 2, 3 checked", "1, 5.9 KiB", "1 records", "No problems found."} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
}

func TestDoctor_DamageIsExit1WithRemedy(t *testing.T) {
	dir := stoppedServer(t)
	if err := os.Remove(filepath.Join(dir, "raft", "tail")); err != nil {
		t.Fatal(err)
	}
	out, _, code := doctorOf(t, dir)
	if code != cmdutil.ExitError || !strings.Contains(out, "damage: rollback guard: missing") || !strings.Contains(out, "remedy: ") {
		t.Errorf("exit %d\n%s", code, out)
	}
	out, _, code = doctorOf(t, dir, "-o", "json")
	var report doctor.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != cmdutil.ExitError || !report.Damaged() {
		t.Errorf("exit %d, %v\n%s", code, err, out)
	}
	if out, _, code = doctorOf(t, dir, "-o", "yaml"); code != cmdutil.ExitError || !strings.Contains(out, "- severity: damage") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestDoctor_NamesServerDirectory(t *testing.T) {
	parent := t.TempDir()
	server := filepath.Join(parent, "lab", "server")
	for _, dir := range []string{filepath.Join(server, "raft"), filepath.Join(parent, "lab", "client")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for dir, hint := range map[string]string{
		parent:                              "found one: cede operator doctor " + server,
		filepath.Join(parent, "lab/client"): "found one: cede operator doctor " + server,
		t.TempDir():                         "pass data_dir of the server's configuration",
	} {
		if _, errs, code := doctorOf(t, dir); code != cmdutil.ExitUsage || !strings.Contains(errs, dir+": not the data directory of a server") || !strings.Contains(errs, hint) {
			t.Errorf("exit %d, %s", code, errs)
		}
	}
}

func TestDoctor_RejectsOtherDirectories(t *testing.T) {
	if _, errs, code := doctorOf(t, filepath.Join(t.TempDir(), "none")); code != cmdutil.ExitUsage || !strings.Contains(errs, "no such file or directory") {
		t.Errorf("exit %d, %s", code, errs)
	}
	dir := t.TempDir()
	s, err := storage.Open(storage.Config{Dir: dir, Log: raftlog.Config{MinFree: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, errs, code := doctorOf(t, dir); code != cmdutil.ExitError || !strings.Contains(errs, "stop the server first") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// A steppingClock advances by ten seconds whenever it is read. Its timers do not fire.
type steppingClock struct {
	*clock.Virtual
	seconds *atomic.Int64
}

func (c steppingClock) Now() time.Time { return time.Unix(c.seconds.Add(10), 0) }

func TestDoctor_ShowsProgress(t *testing.T) {
	dir := stoppedServer(t)
	s, err := storage.Open(storage.Config{Dir: dir, Log: raftlog.Config{MinFree: -1}})
	if err != nil {
		t.Fatal(err)
	}
	noop := func(index uint64) *raft.Log { return &raft.Log{Index: index, Term: 2, Type: raft.LogNoop} }
	if err := errors.Join(s.Log().DeleteRange(1, 3), s.Log().StoreLogs([]*raft.Log{noop(1), noop(2), noop(3)}), s.Close()); err != nil {
		t.Fatal(err)
	}
	w := clitest.New(nil, "operator", "doctor", dir, "--replay")
	w.Clock = steppingClock{clock.NewVirtual(time.Unix(0, 0)), &atomic.Int64{}}
	runEnv(t, w)
	for _, want := range []string{"0 %, raft log, ", " left, policy modules and history, ", "verifying the log, ", "0 %, entry 1 of 3, ", "66 %, about ", " left, entry 3 of 3, "} {
		if !strings.Contains(w.Err.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &w.Err)
		}
	}
}
