package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/snapshot"
	"github.com/cede-scheduler/cede/sdk/client"
)

// image is the data directory of a server that knew jobs, as it was when it was
// stopped, and a snapshot that was saved then.
type image struct {
	t      *testing.T
	dir    string
	jobs   []string
	saved  string
	crash  bool
	config string
}

// cutShort has the log begin where the last snapshot is.
const cutShort = `server: {enabled: true, raft: {heartbeat: 100ms, election: 100ms, lease: 100ms, snapshot_interval: 20ms, snapshot_threshold: 4, trailing_logs: 2}}`

// kept has all of the log stay, and nothing else.
const kept = `server: {enabled: true, raft: {heartbeat: 100ms, election: 100ms, lease: 100ms}}`

// imageOf makes one; crash ends the server by force, so that its journals stay.
func imageOf(t *testing.T, config string, crash bool) *image {
	t.Helper()
	i := &image{t: t, dir: filepath.Join(t.TempDir(), "image"), crash: crash, config: config}
	d := serverAt(t, "", config)
	d.start()
	c := d.client()
	for n := range 12 {
		id := fmt.Sprint("job", n)
		if _, err := c.Jobs().Register(t.Context(), aJob(id), nil); err != nil {
			t.Fatal(err)
		}
		i.jobs = append(i.jobs, id)
	}
	awaitQuiet(t, d)
	if config == cutShort {
		eventually(t, "there is a snapshot", func() bool {
			s, err := c.Operator().RaftStatus(t.Context())
			return err == nil && s.LastSnapshot > 4
		})
	}
	i.saved = filepath.Join(t.TempDir(), "cede.snap")
	if _, stderr, code := d.cede("operator", "snapshot", "save", i.saved); code != 0 {
		t.Fatal(stderr)
	}
	if crash {
		d.kill()
	} else {
		d.stop()
	}
	copyDir(t, d.dataDir, i.dir)
	return i
}

func aJob(id string) *client.Job {
	return &client.Job{ID: id, TaskGroups: []*client.TaskGroup{{Name: "g", Tasks: []*client.Task{{Name: "main", Driver: "sim"}}}}}
}

// server is a server on a copy of the image.
func (i *image) server(t *testing.T) *durable {
	t.Helper()
	d := serverAt(t, "", i.config)
	copyDir(t, i.dir, d.dataDir)
	return d
}

// hasAll starts a server and looks whether every job is there.
func (i *image) hasAll(t *testing.T, d *durable) {
	t.Helper()
	d.start()
	i.knowsAll(t, d)
	d.stop()
}

func (i *image) knowsAll(t *testing.T, d *durable) {
	t.Helper()
	list, _, err := d.client().Jobs().List(t.Context(), nil)
	if err != nil || len(list) != len(i.jobs) {
		t.Errorf("%d jobs of %d, %v", len(list), len(i.jobs), err)
	}
}

// says holds what a process said to what it should.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

func only(t *testing.T, pattern string) string {
	t.Helper()
	found := matching(t, pattern)
	if len(found) == 0 {
		t.Fatalf("there is no %s", pattern)
	}
	return found[len(found)-1]
}

// flip changes a byte in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 0xff
	do(t, os.WriteFile(path, b, 0o600))
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// docs/operations/troubleshooting.md lists the messages of a server that does not start: the reason
// and what to do, doctor says the same, and doing it brings everything back.
func TestFaults_AreToldAndTheWayBackWorks(t *testing.T) {
	whole, short := imageOf(t, kept, false), imageOf(t, cutShort, false)
	for _, c := range []struct {
		name   string
		image  *image
		damage func(t *testing.T, server string)
		told   []string
		back   func(t *testing.T, d *durable)
	}{
		{
			"log damaged", whole,
			func(t *testing.T, s string) { flip(t, only(t, s+"/raft/log/*.sst")) },
			[]string{"raft log at", "restore a saved snapshot into an empty directory"},
			fromSnapshot(whole),
		},
		{
			"log gone", whole,
			func(t *testing.T, s string) { do(t, os.RemoveAll(s+"/raft/log")) },
			[]string{"missing, although it held entries up to", "restore a saved snapshot into an empty directory"},
			fromSnapshot(whole),
		},
		{
			"raft gone", whole,
			func(t *testing.T, s string) { do(t, os.RemoveAll(s+"/raft")) },
			[]string{"missing, although this is the directory of server", "restore a saved snapshot into an empty directory"},
			fromSnapshot(whole),
		},
		{
			"rollback guard gone", whole,
			func(t *testing.T, s string) { do(t, os.Remove(s+"/raft/tail")) },
			[]string{"rollback guard at", "truncate that file to zero bytes"},
			func(t *testing.T, d *durable) { do(t, os.WriteFile(d.serverDir()+"/raft/tail", nil, 0o600)) },
		},
		{
			"newest snapshot damaged", short,
			func(t *testing.T, s string) {
				list, err := snapshot.List(datadir.Layout{Dir: s}, false)
				do(t, err)
				flip(t, filepath.Join(list[0].Path, "state.bin"))
			},
			[]string{"checksum differs from meta.json", "a single server restores a saved snapshot"},
			fromSnapshot(short),
		},
		{
			"snapshots gone", short,
			func(t *testing.T, s string) { do(t, os.Rename(s+"/raft/snapshots", s+"/../elsewhere")) },
			[]string{"snapshot at ", "no snapshot reaches entry", "restore the missing snapshot directory"},
			func(t *testing.T, d *durable) {
				do(t, os.RemoveAll(d.serverDir()+"/raft/snapshots"), os.Rename(d.dataDir+"/elsewhere", d.serverDir()+"/raft/snapshots"))
			},
		},
		{
			"id gone", whole,
			func(t *testing.T, s string) { do(t, os.Rename(s+"/node-id", s+"/../node-id")) },
			[]string{"server ID at", "write this server's ID in the cluster into that file", idOf(t, whole)},
			func(t *testing.T, d *durable) {
				do(t, os.WriteFile(d.serverDir()+"/node-id", []byte(idOf(t, whole)), 0o600))
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := c.image.server(t)
			c.damage(t, d.serverDir())
			says(t, d.refuses(), c.told...)
			stdout, _, code := d.cede("operator", "doctor", d.dataDir)
			if code != 1 {
				t.Errorf("doctor exits with %d\n%s", code, stdout)
			}
			c.back(t, d)
			c.image.hasAll(t, d)
			if stdout, _, code := d.cede("operator", "doctor", d.dataDir, "--replay"); code != 0 {
				t.Errorf("doctor exits with %d\n%s", code, stdout)
			}
		})
	}
}

func idOf(t *testing.T, i *image) string {
	t.Helper()
	b, err := os.ReadFile(i.dir + "/server/node-id")
	do(t, err)
	return strings.TrimSpace(string(b))
}

// fromSnapshot is the way back of a lone server.
func fromSnapshot(i *image) func(*testing.T, *durable) {
	return func(t *testing.T, d *durable) {
		do(t, os.Rename(d.serverDir(), d.serverDir()+".damaged"))
		d.start()
		if _, stderr, code := d.cede("operator", "snapshot", "restore", "--yes", i.saved); code != 0 {
			t.Fatal(stderr)
		}
		d.stop()
	}
}

// With tokens: the empty server makes one of its own, which is good until the
// snapshot is back.
func TestFaults_WayBackWithTokens(t *testing.T) {
	d := serverAt(t, "", kept+"\nacl: {enabled: true}")
	d.start()
	d.firstToken()
	first := d.token
	_, err := d.client().Jobs().Register(t.Context(), aJob("kept"), nil)
	do(t, err)
	saved := filepath.Join(d.dir, "cede.snap")
	if _, stderr, code := d.cede("operator", "snapshot", "save", saved); code != 0 {
		t.Fatal(stderr)
	}
	d.kill()
	do(t, os.Rename(d.serverDir(), d.serverDir()+".damaged"))
	says(t, d.refuses(), "the cluster has no token yet: move the file away")
	do(t, os.Rename(filepath.Join(d.dataDir, "bootstrap.token"), filepath.Join(d.dir, "old.token")))
	d.start()
	d.firstToken()
	if d.token == first {
		t.Fatal("the first token is the same")
	}
	if _, stderr, code := d.cede("operator", "snapshot", "restore", "--yes", saved); code != 0 {
		t.Fatal(stderr)
	}
	if _, _, err := d.client().Jobs().List(t.Context(), nil); !client.HasCode(err, client.CodeUnauthenticated) {
		t.Errorf("by the token in between: %v", err)
	}
	d.token = first
	list, _, err := d.client().Jobs().List(t.Context(), nil)
	if err != nil || len(list) != 1 {
		t.Errorf("%d jobs, %v", len(list), err)
	}
	d.stop()
}

// Damage to what was never promised, or to what there is twice, is none.
func TestFaults_ThatAreNone(t *testing.T) {
	crashed := imageOf(t, kept, true)
	t.Run("torn end of the journal", func(t *testing.T) {
		d := crashed.server(t)
		path := only(t, d.serverDir()+"/raft/log/*.mem")
		b, err := os.ReadFile(path)
		do(t, err)
		end := len(bytes.TrimRight(b, "\x00"))
		copy(b[end+8:], "the beginning of an entry whose end never came")
		do(t, os.WriteFile(path, b, 0o600))
		crashed.hasAll(t, d)
	})
	t.Run("modules and history moved aside", func(t *testing.T) {
		d := crashed.server(t)
		do(t, os.Rename(d.serverDir()+"/store", d.dataDir+"/store.aside"))
		crashed.hasAll(t, d)
	})
	t.Run("half a snapshot", func(t *testing.T) {
		d := crashed.server(t)
		half := d.serverDir() + "/raft/snapshots/9-9-9.tmp"
		do(t, os.MkdirAll(half, 0o700), os.WriteFile(half+"/state.bin", []byte("half"), 0o600))
		crashed.hasAll(t, d)
		if len(matching(t, half)) > 0 {
			t.Error("it is still there")
		}
	})
}

func TestFaults_OneDirectoryOneServer(t *testing.T) {
	i := imageOf(t, kept, false)
	first := i.server(t)
	first.start()
	second := serverAt(t, first.dataDir, kept)
	says(t, second.refuses(), "in use: process "+fmt.Sprint(first.cmd.Process.Pid), "stop that process, or give each server its own directory")
	if _, stderr, code := first.cede("operator", "doctor", first.dataDir); code != 1 || !strings.Contains(stderr, "stop the server first") {
		t.Errorf("doctor: exit %d, %s", code, stderr)
	}
	// A copy that listens where the first one does.
	copied := i.server(t)
	text, err := os.ReadFile(first.file)
	do(t, err, os.WriteFile(copied.file, bytes.ReplaceAll(text, []byte(first.dataDir), []byte(copied.dataDir)), 0o600))
	says(t, copied.refuses(), "listen.http", "check for another process on this port")
	i.knowsAll(t, first)
	first.stop()
}

// An entry that a later release wrote is not skipped: the server ends and says so,
// and the directory is as good as before.
func TestFaults_DirectoryOfALaterRelease(t *testing.T) {
	d := imageOf(t, kept, false).server(t)
	s, err := storage.Open(storage.Config{Dir: d.serverDir()})
	do(t, err)
	last, err := s.Log().LastIndex()
	do(t, err)
	var l raft.Log
	do(t, s.Log().GetLog(last, &l))
	later, err := proto.Marshal(&pb.Entry{Format: 99})
	do(t, err, s.Log().StoreLog(&raft.Log{Index: last + 1, Term: l.Term, Type: raft.LogCommand, Data: later}), s.Close())
	for range 2 {
		says(t, d.refuses(), "cannot apply the log", fmt.Sprintf("log entry %d", last+1), "format 99", "upgrade the server")
	}
	if stdout, _, code := d.cede("operator", "doctor", d.dataDir); code != 0 {
		t.Errorf("doctor exits with %d\n%s", code, stdout)
	}
	if _, stderr, code := d.cede("operator", "doctor", d.dataDir, "--replay"); code == 0 || !strings.Contains(stderr, "upgrade the server") {
		t.Errorf("a replay exits with %d\n%s", code, stderr)
	}
}

// asRoot skips a test that only root can play.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("it acts as somebody else, or mounts a small disk: run the tests as root")
	}
}

func TestFaults_DirectoryOfSomebodyElse(t *testing.T) {
	asRoot(t)
	i := imageOf(t, kept, false)
	const nobody = 65534
	public, err := os.MkdirTemp("/tmp", "cede-test-") //nolint:usetesting // nobody else may pass through the test's own folder
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { do(t, os.RemoveAll(public)) })
	d := serverAt(t, filepath.Join(public, "data"), kept)
	copyDir(t, i.dir, d.dataDir)
	d.user, d.dir, d.file, d.program = &syscall.Credential{Uid: nobody, Gid: nobody}, public, filepath.Join(public, "cede.yaml"), filepath.Join(public, "program")
	d.configure(kept)
	self, err := os.Executable()
	do(t, err)
	b, err := os.ReadFile(self)
	do(t, err, os.WriteFile(d.program, b, 0o755), os.Chmod(d.file, 0o644), os.Chmod(public, 0o777), os.Chmod(d.dataDir, 0o711))
	says(t, d.refuses(), "permission denied", "ID 65534 (chown -R)")
	do(t, filepath.WalkDir(d.dataDir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, nobody, nobody))
	}))
	i.hasAll(t, d)
}

// A disk that fills up under a server: what was acknowledged is there, what was not
// is told, readiness says why, and with room it goes on.
func TestFaults_FullDisk(t *testing.T) {
	disk := mountSmall(t, t.TempDir())
	d := serverAt(t, filepath.Join(disk.at, "data"), kept)
	d.start()
	c := d.client()
	acked := 0
	register := func() error {
		_, err := c.Jobs().Register(t.Context(), aJob(fmt.Sprint("job", acked)), nil)
		if err == nil {
			acked++
		}
		return err
	}
	do(t, register(), register())
	disk.leave(200) // less than entries need, more than votes do
	eventually(t, "a write is refused", func() bool { return register() != nil })
	eventually(t, "readiness says why", func() bool {
		h, err := c.Status().Health(t.Context())
		text := fmt.Sprint(err)
		if h != nil {
			for _, check := range h.Checks {
				text += check.Detail
			}
		}
		return strings.Contains(text, "free disk space")
	})
	disk.room()
	eventually(t, "with room it goes on", func() bool { return register() == nil })
	disk.leave(60)
	eventually(t, "a write is refused", func() bool { return register() != nil })
	says(t, d.endsItself(), "not enough disk space", "free disk space")
	says(t, d.refuses(), "not enough disk space", "free disk space")
	if strings.Contains(d.all.String(), "goroutine ") {
		t.Errorf("it ended with a stack:\n%s", d.all.story())
	}
	disk.room()
	d.start()
	list, _, err := d.client().Jobs().List(t.Context(), nil)
	if err != nil || len(list) < acked {
		t.Errorf("%d jobs, %d were acknowledged, %v", len(list), acked, err)
	}
	d.stop()
}
