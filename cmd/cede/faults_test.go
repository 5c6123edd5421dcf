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

	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/snapshot"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A dataImage is a copy of the data directory of a stopped server that had jobs, with a
// snapshot that was saved before the stop.
type dataImage struct {
	t            *testing.T
	dir          string
	jobs         []string
	snapshotFile string
	crash        bool
	config       string
}

// compactedLogConfig configures frequent snapshots with few trailing log entries.
const compactedLogConfig = `server: {enabled: true, raft: {heartbeat: 100ms, election: 100ms, lease: 100ms, snapshot_interval: 20ms, snapshot_threshold: 4, trailing_logs: 2}}`

// fullLogConfig configures a server that never truncates its log.
const fullLogConfig = `server: {enabled: true, raft: {heartbeat: 100ms, election: 100ms, lease: 100ms}}`

// newDataImage returns an image of a server with the given configuration. If crash is
// true the server is killed, so that its write-ahead journals remain.
func newDataImage(t *testing.T, config string, crash bool) *dataImage {
	t.Helper()
	i := &dataImage{t: t, dir: filepath.Join(t.TempDir(), "image"), crash: crash, config: config}
	d := newServer(t, "", config)
	d.start()
	c := d.client()
	for n := range 12 {
		id := fmt.Sprint("job", n)
		if _, err := c.Jobs().Register(t.Context(), minimalJob(id), nil); err != nil {
			t.Fatal(err)
		}
		i.jobs = append(i.jobs, id)
	}
	waitIdle(t, d.client())
	if config == compactedLogConfig {
		eventually(t, "a snapshot exists", func() bool {
			s, err := c.Operator().RaftStatus(t.Context())
			return err == nil && s.LastSnapshot > 4
		})
	}
	i.snapshotFile = filepath.Join(t.TempDir(), "cede.snap")
	if _, stderr, code := d.cede("operator", "snapshot", "save", i.snapshotFile); code != 0 {
		t.Fatal(stderr)
	}
	if crash {
		d.kill()
	} else {
		d.stop()
	}
	storagetest.CopyDir(t, d.dataDir, i.dir)
	return i
}

func minimalJob(id string) *client.Job {
	return &client.Job{ID: id, TaskGroups: []*client.TaskGroup{{Name: "g", Tasks: []*client.Task{{Name: "main", Driver: "sim"}}}}}
}

// newServer returns a server on a copy of the image. It is not started.
func (i *dataImage) newServer(t *testing.T) *serverProcess {
	t.Helper()
	d := newServer(t, "", i.config)
	storagetest.CopyDir(t, i.dir, d.dataDir)
	return d
}

// checkRestart starts a server, verifies that it has every job, and stops it.
func (i *dataImage) checkRestart(t *testing.T, d *serverProcess) {
	t.Helper()
	d.start()
	i.checkJobs(t, d)
	d.stop()
}

// checkJobs verifies that a running server has every job of the image.
func (i *dataImage) checkJobs(t *testing.T, d *serverProcess) {
	t.Helper()
	list, _, err := d.client().Jobs().List(t.Context(), nil)
	if err != nil || len(list) != len(i.jobs) {
		t.Errorf("got %d jobs, %v, want %d", len(list), err, len(i.jobs))
	}
}

// checkContains verifies that the output of a process contains every part. White space
// is compared as single spaces, because long messages are wrapped.
func checkContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	unwrapped := strings.Join(strings.Fields(text), " ")
	for _, part := range parts {
		if !strings.Contains(unwrapped, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// lastMatch returns the last file that matches a pattern, in lexical order.
func lastMatch(t *testing.T, pattern string) string {
	t.Helper()
	found := glob(t, pattern)
	if len(found) == 0 {
		t.Fatalf("no file matches %s", pattern)
	}
	return found[len(found)-1]
}

// corruptFile inverts the byte in the middle of a file.
func corruptFile(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 0xff
	must(t, os.WriteFile(path, b, 0o600))
}

// must fails the test at once if one of the errors is not nil.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// docs/operations/troubleshooting.md lists these faults. For each of them the server
// refuses to start with a reason and a hint, doctor reports the damage, and the documented
// procedure restores every job.
func TestFaults_AreReportedAndRecoverable(t *testing.T) {
	t.Parallel()
	whole, short := newDataImage(t, fullLogConfig, false), newDataImage(t, compactedLogConfig, false)
	for _, c := range []struct {
		name   string
		image  *dataImage
		damage func(t *testing.T, server string)
		want   []string
		repair func(t *testing.T, d *serverProcess)
	}{
		{
			"log damaged", whole,
			func(t *testing.T, s string) { corruptFile(t, lastMatch(t, s+"/raft/log/*.sst")) },
			[]string{"raft log at", "restore a saved snapshot into an empty directory"},
			restoreSnapshot(whole),
		},
		{
			"log missing", whole,
			func(t *testing.T, s string) { must(t, os.RemoveAll(s+"/raft/log")) },
			[]string{"missing, although it held entries up to", "restore a saved snapshot into an empty directory"},
			restoreSnapshot(whole),
		},
		{
			"raft missing", whole,
			func(t *testing.T, s string) { must(t, os.RemoveAll(s+"/raft")) },
			[]string{"missing, although this is the directory of server", "restore a saved snapshot into an empty directory"},
			restoreSnapshot(whole),
		},
		{
			"rollback guard missing", whole,
			func(t *testing.T, s string) { must(t, os.Remove(s+"/raft/tail")) },
			[]string{"rollback guard at", "truncate that file to zero bytes"},
			func(t *testing.T, d *serverProcess) { must(t, os.WriteFile(d.serverDir()+"/raft/tail", nil, 0o600)) },
		},
		{
			"newest snapshot damaged", short,
			func(t *testing.T, s string) {
				list, err := snapshot.List(datadir.Layout{Dir: s}, false)
				must(t, err)
				corruptFile(t, filepath.Join(list[0].Path, "state.bin"))
			},
			[]string{"checksum differs from meta.json", "a single server restores a saved snapshot"},
			restoreSnapshot(short),
		},
		{
			"snapshots missing", short,
			func(t *testing.T, s string) { must(t, os.Rename(s+"/raft/snapshots", s+"/../elsewhere")) },
			[]string{"snapshot at ", "no snapshot reaches entry", "restore the missing snapshot directory"},
			func(t *testing.T, d *serverProcess) {
				must(t, os.RemoveAll(d.serverDir()+"/raft/snapshots"), os.Rename(d.dataDir+"/elsewhere", d.serverDir()+"/raft/snapshots"))
			},
		},
		{
			"id missing", whole,
			func(t *testing.T, s string) { must(t, os.Rename(s+"/node-id", s+"/../node-id")) },
			[]string{"server ID at", "write this server's ID in the cluster into that file", serverID(t, whole)},
			func(t *testing.T, d *serverProcess) {
				must(t, os.WriteFile(d.serverDir()+"/node-id", []byte(serverID(t, whole)), 0o600))
			},
		},
		{
			"id altered", whole,
			func(t *testing.T, s string) { corruptFile(t, s+"/node-id") },
			[]string{"server ID at", "checksum mismatch", "write this server's ID in the cluster into that file", serverID(t, whole)},
			func(t *testing.T, d *serverProcess) {
				must(t, os.WriteFile(d.serverDir()+"/node-id", []byte(serverID(t, whole)), 0o600))
			},
		},
		{
			"description of the newest snapshot altered", short,
			func(t *testing.T, s string) {
				list, err := snapshot.List(datadir.Layout{Dir: s}, false)
				must(t, err)
				corruptFile(t, filepath.Join(list[0].Path, "meta.json"))
			},
			[]string{"meta.json", "checksum differs from meta.crc32c", "a single server restores a saved snapshot"},
			restoreSnapshot(short),
		},
		{
			"table zeroed", whole,
			func(t *testing.T, s string) {
				path := lastMatch(t, s+"/raft/log/*.sst")
				info, err := os.Stat(path)
				must(t, err, os.WriteFile(path, make([]byte, info.Size()), 0o600))
			},
			[]string{"raft log at", ".sst", "restore a saved snapshot into an empty directory"},
			restoreSnapshot(whole),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.image.newServer(t)
			c.damage(t, d.serverDir())
			checkContains(t, d.startupFailure(), c.want...)
			stdout, _, code := d.cede("operator", "doctor", d.dataDir)
			if code != 1 {
				t.Errorf("doctor exited with %d, want 1\n%s", code, stdout)
			}
			c.repair(t, d)
			c.image.checkRestart(t, d)
			if stdout, _, code := d.cede("operator", "doctor", d.dataDir, "--replay"); code != 0 {
				t.Errorf("doctor exited with %d after the recovery, want 0\n%s", code, stdout)
			}
		})
	}
}

// serverID returns the ID of the server that the image was taken from.
func serverID(t *testing.T, i *dataImage) string {
	t.Helper()
	id, err := datadir.ReadServerID(datadir.Layout{Dir: i.dir + "/server"})
	must(t, err)
	return id.Value
}

// restoreSnapshot returns the recovery procedure of a single server: it starts on an empty
// directory and restores the saved snapshot.
func restoreSnapshot(i *dataImage) func(*testing.T, *serverProcess) {
	return func(t *testing.T, d *serverProcess) {
		must(t, os.Rename(d.serverDir(), d.serverDir()+".damaged"))
		d.start()
		if _, stderr, code := d.cede("operator", "snapshot", "restore", "--yes", i.snapshotFile); code != 0 {
			t.Fatal(stderr)
		}
		d.stop()
	}
}

// With ACLs enabled the empty server creates a bootstrap token. That token is valid until
// the snapshot is restored, and the tokens of the snapshot are valid from then on.
func TestFaults_RestoresSnapshotWithTokens(t *testing.T) {
	t.Parallel()
	d := newServer(t, "", fullLogConfig+"\nacl: {enabled: true}")
	d.start()
	d.readBootstrapToken()
	first := d.token
	_, err := d.client().Jobs().Register(t.Context(), minimalJob("kept"), nil)
	must(t, err)
	saved := filepath.Join(d.dir, "cede.snap")
	if _, stderr, code := d.cede("operator", "snapshot", "save", saved); code != 0 {
		t.Fatal(stderr)
	}
	d.kill()
	must(t, os.Rename(d.serverDir(), d.serverDir()+".damaged"))
	checkContains(t, d.startupFailure(), "the cluster has no token yet: move the file")
	must(t, os.Rename(filepath.Join(d.dataDir, "bootstrap.token"), filepath.Join(d.dir, "old.token")))
	d.start()
	d.readBootstrapToken()
	if d.token == first {
		t.Fatal("bootstrap token of the empty server equals the first one")
	}
	if _, stderr, code := d.cede("operator", "snapshot", "restore", "--yes", saved); code != 0 {
		t.Fatal(stderr)
	}
	if _, _, err := d.client().Jobs().List(t.Context(), nil); !client.HasCode(err, client.CodeUnauthenticated) {
		t.Errorf("token of the empty server after the restore: error %v, want %s", err, client.CodeUnauthenticated)
	}
	d.token = first
	list, _, err := d.client().Jobs().List(t.Context(), nil)
	if err != nil || len(list) != 1 {
		t.Errorf("got %d jobs, %v, want 1", len(list), err)
	}
	d.stop()
}

// The server starts despite damage to data that was never acknowledged or that it can
// rebuild.
func TestFaults_ToleratesHarmlessDamage(t *testing.T) {
	t.Parallel()
	crashed := newDataImage(t, fullLogConfig, true)
	t.Run("torn end of journal", func(t *testing.T) {
		d := crashed.newServer(t)
		path := lastMatch(t, d.serverDir()+"/raft/log/*.mem")
		b, err := os.ReadFile(path)
		must(t, err)
		end := len(bytes.TrimRight(b, "\x00"))
		copy(b[end+8:], "start of an entry that was never completed")
		must(t, os.WriteFile(path, b, 0o600))
		crashed.checkRestart(t, d)
	})
	t.Run("modules and history missing", func(t *testing.T) {
		d := crashed.newServer(t)
		must(t, os.Rename(d.serverDir()+"/store", d.dataDir+"/store.aside"))
		crashed.checkRestart(t, d)
	})
	t.Run("incomplete snapshot", func(t *testing.T) {
		d := crashed.newServer(t)
		half := d.serverDir() + "/raft/snapshots/9-9-9.tmp"
		must(t, os.MkdirAll(half, 0o700), os.WriteFile(half+"/state.bin", []byte("half"), 0o600))
		crashed.checkRestart(t, d)
		if len(glob(t, half)) > 0 {
			t.Error("incomplete snapshot was not removed")
		}
	})
}

func TestFaults_RejectsSecondServerOnDirectory(t *testing.T) {
	t.Parallel()
	i := newDataImage(t, fullLogConfig, false)
	first := i.newServer(t)
	first.start()
	second := newServer(t, first.dataDir, fullLogConfig)
	checkContains(t, second.startupFailure(), "in use: process "+fmt.Sprint(first.cmd.Process.Pid), "stop that process, or give each server its own directory")
	if _, stderr, code := first.cede("operator", "doctor", first.dataDir); code != 1 || !strings.Contains(stderr, "stop the server first") {
		t.Errorf("doctor: exit %d, %s", code, stderr)
	}
	// A copy of the directory does not help if both servers have the same address.
	copied := i.newServer(t)
	text, err := os.ReadFile(first.configFile)
	must(t, err, os.WriteFile(copied.configFile, bytes.ReplaceAll(text, []byte(first.dataDir), []byte(copied.dataDir)), 0o600))
	checkContains(t, copied.startupFailure(), "listen.http", "check for another process on this port")
	i.checkJobs(t, first)
	first.stop()
}

// A server does not skip an entry that a newer release wrote. It exits with a reason and
// leaves the directory as it was.
func TestFaults_RejectsLogOfNewerRelease(t *testing.T) {
	t.Parallel()
	d := newDataImage(t, fullLogConfig, false).newServer(t)
	s, err := storage.Open(storage.Config{Dir: d.serverDir()})
	must(t, err)
	last, err := s.Log().LastIndex()
	must(t, err)
	var l raft.Log
	must(t, s.Log().GetLog(last, &l))
	later, err := proto.Marshal(&pb.Entry{Format: 99})
	must(t, err, s.Log().StoreLog(&raft.Log{Index: last + 1, Term: l.Term, Type: raft.LogCommand, Data: later}), s.Close())
	for range 2 {
		checkContains(t, d.startupFailure(), "cannot apply the log", fmt.Sprintf("log entry %d", last+1), "format 99", "upgrade the server")
	}
	if stdout, _, code := d.cede("operator", "doctor", d.dataDir); code != 0 {
		t.Errorf("doctor exited with %d, want 0\n%s", code, stdout)
	}
	if _, stderr, code := d.cede("operator", "doctor", d.dataDir, "--replay"); code == 0 || !strings.Contains(stderr, "upgrade the server") {
		t.Errorf("doctor --replay exited with %d, want a failure with a hint\n%s", code, stderr)
	}
}

// requireRoot skips the test unless it runs as root.
func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("requires root to change users or to mount a disk")
	}
}

// publicFolder returns a folder that every user may enter and write to.
func publicFolder(t *testing.T) string {
	t.Helper()
	public, err := os.MkdirTemp("/tmp", "cede-test-") //nolint:usetesting // other users cannot enter the folder of a test
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { must(t, os.RemoveAll(public)) })
	must(t, os.Chmod(public, 0o777))
	return public
}

func TestFaults_ReportsMissingPermissions(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	i := newDataImage(t, fullLogConfig, false)
	const unprivileged = 65534
	public := publicFolder(t)
	d := newServer(t, filepath.Join(public, "data"), fullLogConfig)
	storagetest.CopyDir(t, i.dir, d.dataDir)
	d.process.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
	d.dir, d.configFile, d.program = public, filepath.Join(public, "cede.yaml"), filepath.Join(public, "program")
	d.configure(fullLogConfig)
	b, err := os.ReadFile(cedetest.Program(t))
	must(t, err, os.WriteFile(d.program, b, 0o755), os.Chmod(d.configFile, 0o644), os.Chmod(d.dataDir, 0o711))
	checkContains(t, d.startupFailure(), "permission denied", "ID 65534 (chown -R)")
	must(t, filepath.WalkDir(d.dataDir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, unprivileged, unprivileged))
	}))
	i.checkRestart(t, d)
}

// A server survives a disk that fills up: acknowledged writes are kept, others fail with
// an error, readiness reports the reason, and the server resumes when space is freed.
func TestFaults_FullDisk(t *testing.T) {
	t.Parallel()
	disk := mountSmall(t, t.TempDir())
	d := newServer(t, filepath.Join(disk.mountPoint, "data"), fullLogConfig)
	d.start()
	c := d.client()
	acked := 0
	register := func() error {
		_, err := c.Jobs().Register(t.Context(), minimalJob(fmt.Sprint("job", acked)), nil)
		if err == nil {
			acked++
		}
		return err
	}
	must(t, register(), register())
	disk.fillExcept(votesOnly)
	eventually(t, "a write is refused", func() bool { return register() != nil })
	eventually(t, "readiness reports the full disk", func() bool {
		h, err := c.Status().Health(t.Context())
		text := fmt.Sprint(err)
		if h != nil {
			for _, check := range h.Checks {
				text += check.Detail
			}
		}
		return strings.Contains(text, "free disk space")
	})
	disk.freeSpace()
	eventually(t, "a write succeeds after space was freed", func() bool { return register() == nil })
	disk.fillExcept(60) // too little for votes
	eventually(t, "a write is refused", func() bool { return register() != nil })
	checkContains(t, d.waitFailure(), "not enough disk space", "free disk space")
	checkContains(t, d.startupFailure(), "not enough disk space", "free disk space")
	if strings.Contains(d.allOutput.String(), "goroutine ") {
		t.Errorf("server exited with a stack trace:\n%s", d.allOutput.filtered())
	}
	disk.freeSpace()
	d.start()
	list, _, err := d.client().Jobs().List(t.Context(), nil)
	if err != nil || len(list) < acked {
		t.Errorf("got %d jobs, %v, want the %d acknowledged", len(list), err, acked)
	}
	d.stop()
}
