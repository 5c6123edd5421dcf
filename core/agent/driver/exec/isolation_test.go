//go:build linux

package exec

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

// asRoot skips the test unless it may change users.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may change the user")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open lets every user reach the folder of a task, as the directories of an agent do.
func open(t *testing.T, s *driver.Spec) {
	t.Helper()
	for dir := s.Dir; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && info.Mode()&0o001 == 0 {
			err = os.Chmod(dir, info.Mode()|0o011)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Names are aliases of IDs, and the kernel grants access by ID.
func TestAccount_DeniesUsersByID(t *testing.T) {
	w := newFixture(t, Options{Denied: []string{"root"}})
	for _, u := range []*user.User{{Username: "root", Uid: "0"}, {Username: "toor", Uid: "0"}} {
		if err := w.d.checkDenied(u); err == nil || !strings.Contains(err.Error(), "user "+u.Username+" is denied") {
			t.Errorf("%s: %v", u.Username, err)
		}
	}
	if err := w.d.checkDenied(&user.User{Username: "daemon", Uid: "1"}); err != nil {
		t.Error(err)
	}
	// The user database and the configuration may write an ID in several ways.
	for _, ids := range [][2]string{{"0", "00"}, {"0", "+0"}, {"00", "0"}, {"+0", "0"}, {"root", "00"}, {"01000", "1000"}} {
		if err := newFixture(t, Options{Denied: ids[:1]}).d.checkDenied(&user.User{Username: "alias", Uid: ids[1]}); err == nil {
			t.Errorf("%s does not deny the ID %s", ids[0], ids[1])
		}
	}
	daemon, err := user.Lookup("daemon")
	if err != nil {
		t.Skip(err)
	}
	s := w.spec("true")
	s.User = "daemon"
	if _, err := newFixture(t, Options{Denied: []string{daemon.Uid}}).d.Start(s); err == nil || !strings.Contains(err.Error(), "is denied") {
		t.Errorf("user with a denied ID: %v", err)
	}
}

// A task cannot read the files of another namespace, and keeps its ID when the agent
// restarts.
func TestDriver_SeparatesNamespaces(t *testing.T) {
	asRoot(t)
	o := Options{UIDs: UIDRange{First: 700_000_000, Count: 2}, UIDFile: filepath.Join(t.TempDir(), "uids.json")}
	if !o.UIDs.Available() {
		t.Skip("the user IDs do not exist here")
	}
	w := newFixture(t, o)
	run := func(namespace, script string) (*driver.Spec, string) {
		s := w.spec(script)
		s.Namespace = namespace
		open(t, s)
		if exit := w.await(w.start(s)); !exit.OK() {
			t.Fatalf("%s: ended with %+v: %s", namespace, exit, w.output(s, "stderr"))
		}
		return s, strings.TrimSpace(w.output(s, "stdout"))
	}
	first, uid := run("a", `umask 077; echo secret >own; chmod 711 .; id -u`)
	_, other := run("b", `id -u; cat `+filepath.Join(first.Dir, dirWork, "own")+` 2>&1 || true`)
	if uid != "700000000" || !strings.HasPrefix(other, "700000001\n") || !strings.HasSuffix(other, "Permission denied") {
		t.Errorf("namespace a runs as %s; namespace b: %s", uid, other)
	}
	w = newFixture(t, o)
	if _, again := run("a", `id -u; cat `+filepath.Join(first.Dir, dirWork, "own")); again != "700000000\nsecret" {
		t.Errorf("after a restart: %s", again)
	}
	s := w.spec("true")
	s.Namespace = "c"
	if _, err := w.d.Start(s); err == nil || !strings.Contains(err.Error(), "no user ID is free") {
		t.Errorf("third namespace of two IDs: %v", err)
	}
}

// If the table of IDs is damaged or missing, no namespace gets the ID of another one.
func TestDriver_RefusesDamagedTableOfUserIDs(t *testing.T) {
	asRoot(t)
	dir := t.TempDir()
	o := Options{UIDs: UIDRange{First: 700_000_000, Count: 2}, UIDFile: filepath.Join(dir, "uids.json"), AllocDir: filepath.Join(dir, "allocs")}
	if !o.UIDs.Available() {
		t.Skip("the user IDs do not exist here")
	}
	w := newFixture(t, o)
	s := w.spec("true")
	s.Namespace, s.Dir = "a", filepath.Join(o.AllocDir, "alloc", "main")
	must(t, os.MkdirAll(s.Dir, 0o711))
	open(t, s)
	w.await(w.start(s))
	intact, err := os.ReadFile(o.UIDFile)
	must(t, err)
	flipped := bytes.Clone(intact)
	flipped[len(flipped)/3] ^= 1
	for name, content := range map[string][]byte{
		"removed": nil, "truncated to 0": {}, "truncated": intact[:len(intact)/3], "zeroed": make([]byte, len(intact)), "bit flipped": flipped,
	} {
		must(t, os.WriteFile(o.UIDFile, content, 0o600))
		if content == nil {
			must(t, os.Remove(o.UIDFile))
		}
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), o.UIDFile) || !strings.Contains(err.Error(), "restore the file") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	must(t, os.WriteFile(o.UIDFile, intact, 0o600))
	if _, err := New(o); err != nil {
		t.Errorf("restored: %v", err)
	}
	must(t, errors.Join(os.Remove(o.UIDFile), os.RemoveAll(o.AllocDir)))
	if _, err := New(o); err != nil {
		t.Errorf("removed with all tasks: %v", err)
	}
}

func TestDriver_TasksGainNoPrivileges(t *testing.T) {
	w := newFixture(t, Options{})
	s := w.spec(`grep NoNewPrivs /proc/self/status; cat /proc/self/oom_score_adj`)
	w.await(w.start(s))
	if out := strings.Fields(w.output(s, "stdout")); len(out) != 3 || out[1] != "1" {
		t.Errorf("status is %q", out)
	}
}

func TestDriver_LimitsMemoryOfTask(t *testing.T) {
	if err := Limits(); err != nil {
		t.Skip(err)
	}
	w := newFixture(t, Options{MemoryLimit: 2})
	s := w.spec(`grep -c cede- /proc/self/cgroup; head -c 300000000 /dev/zero | tail -n 1 | wc -c`)
	s.MemoryMB = 16
	p := w.start(s)
	h, err := findHierarchy()
	if err != nil {
		t.Fatal(err)
	}
	exit := w.await(p)
	out := strings.Fields(w.output(s, "stdout"))
	if len(out) != 2 {
		t.Fatalf("ended with %+v: %q: %s", exit, out, w.output(s, "stderr"))
	}
	if groups, _ := strconv.Atoi(out[0]); groups < 1 {
		t.Error("the task has no cgroup")
	}
	if out[1] != "0" {
		t.Errorf("a task with a limit of 80 MiB allocated 300 MB: %q", out)
	}
	for _, dir := range h.groupDirs(s.Dir) {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("cgroup %s remains: %v", dir, err)
		}
	}
}

func TestCgroupDirs_FindsOwnGroups(t *testing.T) {
	const hybrid = `30 24 0:26 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
31 24 0:27 /box /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 24 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	unified, legacy := cgroupDirs(hybrid, "8:pids:/\n4:memory:/box/a\n0::/x\n")
	if unified != "/sys/fs/cgroup/unified/x" || legacy["pids"] != "/sys/fs/cgroup/pids" || legacy["memory"] != "/sys/fs/cgroup/memory/a" {
		t.Errorf("unified %q, legacy %q", unified, legacy)
	}
	unified, legacy = cgroupDirs("32 24 0:28 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/other\n")
	if unified != "" || len(legacy) > 0 {
		t.Errorf("a group that is not mounted: unified %q, legacy %q", unified, legacy)
	}
}

// A container of one file has no user database. Tasks without a user start there, and root is
// denied by its ID.
func TestIDOf_NeedsNoUserDatabase(t *testing.T) {
	missing := func(string) (*user.User, error) {
		return nil, &fs.PathError{Op: "open", Path: "/etc/passwd", Err: syscall.ENOENT}
	}
	for name, want := range map[string]string{"root": "0", "daemon": "", "0": ""} {
		if got, err := idOf(name, missing); got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	broken := errors.New("input/output error")
	if _, err := idOf("root", func(string) (*user.User, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}
