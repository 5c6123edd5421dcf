//go:build linux

package agent_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cede-scheduler/cede/core/agent"
	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/agent/driver/sim"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// damages lists the ways in which the tests damage a file.
var damages = map[string]func(path string, b []byte) error{
	"removed":           func(path string, _ []byte) error { return os.Remove(path) },
	"truncated to 0":    func(path string, _ []byte) error { return os.Truncate(path, 0) },
	"truncated to half": func(path string, b []byte) error { return os.Truncate(path, int64(len(b)/2)) },
	"zeroed":            func(path string, b []byte) error { return os.WriteFile(path, make([]byte, len(b)), 0o600) },
	"bit flipped": func(path string, b []byte) error {
		b[len(b)/3] ^= 1
		return os.WriteFile(path, b, 0o600)
	},
}

func damage(t *testing.T, name, path string) {
	t.Helper()
	var b []byte
	var err error
	if name != "removed" { // a pipe can only be removed
		b, err = os.ReadFile(path)
	}
	if err == nil {
		err = damages[name](path, b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lockedBuffer is a log that a test reads while an agent writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A damaged record of an allocation leaves no task without an agent: tasks of
// allocations that are still assigned continue and are not started twice, others are
// stopped.
func TestFaults_DamagedRecordsOrphanNoTask(t *testing.T) {
	skipDamageUnderRace(t)
	for name := range damages {
		t.Run(name, func(t *testing.T) {
			c, dir := newCluster(), dataDir(t)
			first := startExec(t, c, dir, func(conf *agent.Config) { conf.StopAll = false })
			for _, id := range []string{"wanted", "unwanted", "stopped"} {
				c.place(shell(id, `echo up; while :; do sleep 0.02; done`))
				c.await(t, id, agent.StatusRunning)
				awaitLog(t, dir, id, "up")
			}
			first.stop()
			c.do(func() {
				delete(c.allocs, "unwanted")
				c.unwant("stopped")
			})
			var logged lockedBuffer
			for _, id := range []string{"wanted", "unwanted", "stopped"} {
				damage(t, name, filepath.Join(dir, "allocs", id, "state.json"))
			}
			startExec(t, c, dir, func(conf *agent.Config) { conf.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
			c.await(t, "stopped", agent.StatusComplete)
			eventually(t, "only the processes of one allocation remain", func() bool {
				return len(processesOf(dir+"/allocs/unwanted"))+len(processesOf(dir+"/allocs/stopped")) == 0
			})
			c.await(t, "wanted", agent.StatusRunning)
			if out := awaitLog(t, dir, "wanted", "up"); strings.Count(out, "up") != 1 {
				t.Errorf("output %q: was it started twice?", out)
			}
			for _, id := range []string{"wanted", "unwanted", "stopped"} {
				if path := filepath.Join(dir, "allocs", id, "state.json"); !strings.Contains(logged.String(), path) {
					t.Errorf("the log does not name %s:\n%s", path, logged.String())
				}
			}
		})
	}
}

// taskFile describes a file in the folder of a task, and the effect of damage to it.
type taskFile struct {
	ends  bool     // the task runs until the file exit.json exists, and ends while no agent runs
	lost  []string // damages after which the task is reported as failed; nil: none
	names string   // in the text of the failure
	only  []string // possible damages; nil: all
}

var everyDamage = slices.Sorted(maps.Keys(damages))

// taskFiles lists every file in the folder of a task. The output of a task has no
// checksum: it belongs to the task, as do the files in its working directory.
var taskFiles = map[string]taskFile{
	"alive":     {only: []string{"removed"}, lost: []string{"removed"}, names: "alive"},
	"control":   {only: []string{"removed"}},
	"task.json": {},
	"exit.json": {ends: true, lost: everyDamage, names: "supervisor was killed|exit"},
	"stdout.0":  {},
	"stderr.0":  {},
}

// Damage to a file of a task is repaired or reported. In no case does the task run twice,
// or continue after its allocation was stopped.
func TestFaults_DamageToTaskFilesIsNotSilent(t *testing.T) {
	skipDamageUnderRace(t)
	c, dir := newCluster(), dataDir(t)
	leave := func(conf *agent.Config) { conf.StopAll = false }
	first := startExec(t, c, dir, leave)
	type one struct{ file, damage, id string }
	var cases []one
	for file, f := range taskFiles {
		for _, damage := range everyDamage {
			if f.only == nil || slices.Contains(f.only, damage) {
				id := strings.ReplaceAll(file+"-"+damage, " ", "-")
				cases = append(cases, one{file, damage, id})
				c.place(shell(id, `echo up; echo up >&2; while [ ! -e go ]; do sleep 0.05; done`))
			}
		}
	}
	folder := func(id string) string { return filepath.Join(dir, "allocs", id, "main") }
	for _, x := range cases {
		c.await(t, x.id, agent.StatusRunning)
		awaitLog(t, dir, x.id, "up")
	}
	first.stop()
	requireListed(t, dir, folder("task.json-removed"))
	for _, x := range cases {
		if taskFiles[x.file].ends {
			if err := os.WriteFile(filepath.Join(folder(x.id), "work", "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the task ended", func() bool { return len(processesOf(filepath.Dir(folder(x.id)))) == 0 })
		}
		damage(t, x.damage, filepath.Join(folder(x.id), x.file))
	}
	startExec(t, c, dir, leave)
	for _, x := range cases {
		f := taskFiles[x.file]
		if slices.Contains(f.lost, x.damage) {
			c.await(t, x.id, agent.StatusFailed)
			if text := c.last(x.id).Text; !regexp.MustCompile(f.names).MatchString(text) {
				t.Errorf("%s: the failure does not name the file: %s", x.id, text)
			}
		}
		c.do(func() { c.unwant(x.id) })
	}
	for _, x := range cases {
		if !slices.Contains(taskFiles[x.file].lost, x.damage) {
			c.await(t, x.id, agent.StatusComplete)
		}
		eventually(t, "no process of "+x.id+" remains", func() bool { return len(processesOf(filepath.Dir(folder(x.id)))) == 0 })
		if out, _ := os.ReadFile(filepath.Join(folder(x.id), "stdout.0")); strings.Count(string(out), "up") > 1 {
			t.Errorf("%s: output %q: was it started twice?", x.id, out)
		}
	}
}

// requireListed checks that tests damage every file of the data directory.
func requireListed(t *testing.T, dir, task string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && name == "work": // of a task
			return fs.SkipDir
		case d.IsDir():
		case path == filepath.Join(dir, "lock"): // its content has no meaning
		case path == filepath.Join(dir, "node.json"): // TestFaults_DamagedIdentityIsRefused
		case name == "state.json": // TestFaults_DamagedRecordsOrphanNoTask
		default:
			if _, ok := taskFiles[name]; !ok {
				t.Errorf("no test damages %s: add it to a list", path)
			}
		}
		return nil
	})
	if _, missing := os.Stat(filepath.Join(task, "task.json")); err != nil || missing != nil {
		t.Fatal(err, missing)
	}
}

// A node with a damaged identity does not start as another node.
func TestFaults_DamagedIdentityIsRefused(t *testing.T) {
	for name := range damages {
		if name == "removed" {
			continue // the documented way to register as a new node
		}
		t.Run(name, func(t *testing.T) {
			c, dir := newCluster(), t.TempDir()
			start(t, c, func(conf *agent.Config) { conf.DataDir = dir }).stop()
			path := filepath.Join(dir, "node.json")
			damage(t, name, path)
			conf := agent.Config{Servers: c, DataDir: dir, Drivers: map[string]driver.Driver{"sim": sim.Driver{}}}
			if a, err := agent.New(conf); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove the file") {
				t.Errorf("agent %v, error %v", a, err)
			}
		})
	}
}

// A node without its identity registers as a new one. If it ran allocations, the log names
// the missing file, and their tasks are stopped.
func TestFaults_MissingIdentityIsLogged(t *testing.T) {
	c, dir := newCluster(), dataDir(t)
	first := startExec(t, c, dir, func(conf *agent.Config) { conf.StopAll = false })
	c.place(shell("old", `echo up; while :; do sleep 0.02; done`))
	c.await(t, "old", agent.StatusRunning)
	first.stop()
	path := filepath.Join(dir, "node.json")
	damage(t, "removed", path)
	c.do(func() { delete(c.allocs, "old") }) // it belongs to another node
	var logged lockedBuffer
	startExec(t, c, dir, func(conf *agent.Config) { conf.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	if !strings.Contains(logged.String(), path) {
		t.Errorf("the log does not name %s:\n%s", path, logged.String())
	}
	eventually(t, "no task of the earlier node remains", func() bool { return len(processesOf(dir+"/allocs/old")) == 0 })
}

// An identity without a checksum, of an earlier release, is accepted and gets one.
func TestIdentity_OfEarlierReleaseIsAccepted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "node.json")
	const id = "0f0e0d0c-0b0a-4908-8706-050403020100"
	if err := os.WriteFile(path, []byte(`{"ID":"`+id+`","Secret":"`+id+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a, err := agent.New(agent.Config{Servers: newCluster(), DataDir: dir, Drivers: map[string]driver.Driver{"sim": sim.Driver{}}})
		if err != nil || a.NodeID() != id {
			t.Fatalf("agent %v, error %v", a, err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), "\ncrc32c ") {
		t.Errorf("file %q, error %v; want a checksum", b, err)
	}
}

// skipDamageUnderRace skips stories about files, whose goroutines are those of TestExec.
func skipDamageUnderRace(t *testing.T) {
	t.Helper()
	if soak.Race && !soak.Full() {
		t.Skip("it starts processes of its own for each file, and TestExec runs them under the race detector")
	}
}
