package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// newClientNode configures a client node of a server, with 1000 MiB, as a process of its own.
func newClientNode(t testing.TB, server *serverProcess) *serverProcess {
	t.Helper()
	user := "" // the user that runs the test
	if os.Geteuid() == 0 {
		user = "root"
	}
	return newNode(t, server, "", fmt.Sprintf("{user: %q, denied_users: []}", user))
}

// newNode configures a client node with settings of the driver exec, and ends its tasks with the
// test. dataDir is empty for a folder of the test.
func newNode(t testing.TB, server *serverProcess, dataDir, driver string) *serverProcess {
	t.Helper()
	d := newServer(t, dataDir, fmt.Sprintf(`client:
  enabled: true
  servers: [%q]
  resources: {memory: 1000}
  pressure: {enabled: false}
  drivers: {exec: %s}
`, server.url, driver))
	t.Cleanup(func() { // runs before the cleanup that kills the agent: tasks survive their agent
		for _, pid := range taskProcesses(d) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // fails if the process has exited
		}
	})
	return d
}

// taskProcesses returns the IDs of the processes started by a node: supervisors, tasks
// and their children.
func taskProcesses(d *serverProcess) (pids []int) {
	r := &devAgent{dir: d.dataDir}
	for _, file := range r.processes() {
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// shellJob returns a job of count allocations that each run a shell script.
func shellJob(id string, priority, count, memory int, kill time.Duration, text string) *client.Job {
	return &client.Job{ID: id, Priority: &priority, TaskGroups: []*client.TaskGroup{{
		Name: "g", Count: &count,
		Tasks: []*client.Task{{
			Name: "main", Driver: "exec", KillTimeout: &kill, Resources: &client.Resources{MemoryMB: &memory},
			Config: map[string]any{"command": "/bin/sh", "args": []string{"-c", text}},
		}},
	}}}
}

// awaitRunning waits until count allocations of a job run and returns their IDs.
func awaitRunning(t testing.TB, c *client.Client, job string, count int) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	eventually(t, fmt.Sprintf("%d allocations of %s run", count, job), func() bool {
		clear(ids)
		list, _, err := c.Jobs().Allocations(t.Context(), job, nil)
		for _, a := range list {
			if a.ClientStatus == "running" && a.DesiredStatus == "run" {
				ids[a.ID] = true
			}
		}
		return err == nil && len(ids) == count
	})
	return ids
}

// readUnixNano reads a Unix time in nanoseconds from a file that a script wrote.
func readUnixNano(t *testing.T, file string) time.Time {
	t.Helper()
	b, err := os.ReadFile(file)
	must(t, err)
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	must(t, err)
	return time.Unix(0, n)
}

// A victim that ignores SIGTERM runs until its kill timeout expires. The preemptor
// starts only when the victim has exited.
func TestAgents_StartsPreemptorAfterVictimExits(t *testing.T) {
	server := newServer(t, "", fullLogConfig)
	server.start()
	c := server.client()
	all := client.PreemptionConfig{SystemSchedulerEnabled: true, SysBatchSchedulerEnabled: true, BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true}
	_, err := c.Scheduler().Set(t.Context(), &client.SchedulerConfiguration{SchedulerAlgorithm: "binpack", PreemptionConfig: all}, nil)
	must(t, err)
	node := newClientNode(t, server)
	node.start()
	files := t.TempDir()
	at := func(name string) string { return filepath.Join(files, name) }
	const timeout = 1500 * time.Millisecond
	low := shellJob("low", 20, 1, 900, timeout, fmt.Sprintf(
		`trap 'date +%%s%%N > %[1]s/term' TERM; echo $$ > %[1]s/pid; while :; do date +%%s%%N > %[1]s/beat.new; mv %[1]s/beat.new %[1]s/beat; sleep 0.02; done`, files))
	_, err = c.Jobs().Register(t.Context(), low, nil)
	must(t, err)
	awaitRunning(t, c, "low", 1)
	eventually(t, "the victim runs", func() bool { _, err := os.Stat(at("beat")); return err == nil })
	high := shellJob("high", 80, 1, 900, timeout, fmt.Sprintf(
		`date +%%s%%N > %[1]s/start; if kill -0 $(cat %[1]s/pid); then echo together; else echo alone; fi > %[1]s/seen.new; mv %[1]s/seen.new %[1]s/seen; while :; do sleep 0.1; done`, files))
	_, err = c.Jobs().Register(t.Context(), high, nil)
	must(t, err)
	awaitRunning(t, c, "high", 1)
	eventually(t, "the preemptor runs", func() bool { _, err := os.Stat(at("seen")); return err == nil })
	seen, err := os.ReadFile(at("seen"))
	must(t, err)
	if string(seen) != "alone\n" {
		t.Errorf("preemptor found the victim %q, want it to be alone", seen)
	}
	term, last, started := readUnixNano(t, at("term")), readUnixNano(t, at("beat")), readUnixNano(t, at("start"))
	t.Logf("the victim ran for %v after SIGTERM; the preemptor started %v later", last.Sub(term), started.Sub(last))
	// The shell runs its trap only after the current sleep, and the last beat precedes
	// the kill, so the measured time is shorter than the timeout: by much if the shell
	// waits for a processor. A victim that is not spared has no beat after its trap.
	if lived := last.Sub(term); lived < timeout/3 {
		t.Errorf("victim was killed after %v, before its kill timeout of %v", lived, timeout)
	}
	if started.Before(last) {
		t.Errorf("preemptor started %v before its victim exited", last.Sub(started))
	}
	for _, job := range []string{"low", "high"} {
		_, err := c.Jobs().Stop(t.Context(), job, nil)
		must(t, err)
	}
	eventually(t, "all task processes have exited", func() bool { return len(taskProcesses(node)) == 0 })
}

// Tasks survive a restart of the server, of the agent, and of both, whether these are
// stopped or killed. The agent recovers its tasks and starts none of them twice.
func TestAgents_TasksSurviveRestarts(t *testing.T) {
	t.Parallel()
	server := newServer(t, "", fullLogConfig)
	server.start()
	node := newClientNode(t, server)
	node.start()
	c := server.client()
	starts := filepath.Join(t.TempDir(), "starts")
	_, err := c.Jobs().Register(t.Context(), shellJob("web", 50, 3, 100, time.Second, fmt.Sprintf(`echo $$ >> %s; while :; do sleep 0.1; done`, starts)), nil)
	must(t, err)
	before := awaitRunning(t, c, "web", 3)
	startedPIDs := func() string {
		b, err := os.ReadFile(starts)
		must(t, err)
		return string(b)
	}
	eventually(t, "each task has started", func() bool { return strings.Count(startedPIDs(), "\n") == 3 })
	once := startedPIDs()
	for _, e := range []struct {
		name string
		end  func()
	}{
		{"server killed", func() { server.kill(); server.start() }},
		{"server stopped", func() { server.stop(); server.start() }},
		{"agent killed", func() { node.kill(); node.start() }},
		{"agent stopped", func() { node.stop(); node.start() }},
		{"both killed", func() { node.kill(); server.kill(); server.start(); node.start() }},
		{"both killed, the agent restarts first", func() { server.kill(); node.kill(); node.launch(); server.start() }},
	} {
		t.Run(e.name, func(t *testing.T) {
			e.end()
			// If a new job runs, the agent has reconnected to the server.
			id := strings.ReplaceAll(strings.ReplaceAll(e.name, ",", ""), " ", "-")
			_, err := c.Jobs().Register(t.Context(), shellJob(id, 50, 1, 10, time.Second, `while :; do sleep 0.1; done`), nil)
			must(t, err)
			awaitRunning(t, c, id, 1)
			_, err = c.Jobs().Stop(t.Context(), id, nil)
			must(t, err)
			for id := range awaitRunning(t, c, "web", 3) {
				if !before[id] {
					t.Errorf("allocation %s was replaced", id)
				}
			}
			if now := startedPIDs(); now != once {
				t.Errorf("tasks were started again: %q, want %q", now, once)
			}
			for line := range strings.Lines(once) {
				pid, err := strconv.Atoi(strings.TrimSpace(line))
				must(t, err)
				if err := syscall.Kill(pid, 0); err != nil {
					t.Errorf("process %d has exited", pid)
				}
			}
		})
	}
	_, err = c.Jobs().Stop(t.Context(), "web", nil)
	must(t, err)
	eventually(t, "all task processes have exited", func() bool { return len(taskProcesses(node)) == 0 })
}
