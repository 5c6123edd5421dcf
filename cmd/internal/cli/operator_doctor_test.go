package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
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
