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

// nodeOf is a node of a server, in a process of its own.
func nodeOf(t *testing.T, server *durable, memory int) *durable {
	t.Helper()
	user := "" // whoever the test is
	if os.Geteuid() == 0 {
		user = "root"
	}
	d := serverAt(t, "", fmt.Sprintf(`client:
  enabled: true
  servers: [%q]
  resources: {memory: %d}
  pressure: {enabled: false}
  drivers: {exec: {user: %q, denied_users: []}}
`, server.url, memory, user))
	t.Cleanup(func() { // behind what kills the agent: work outlives it
		for _, pid := range tasksOf(d) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	})
	return d
}

// tasksOf lists the processes that work for a node: supervisors, tasks, and what
// they started.
func tasksOf(d *durable) (pids []int) {
	r := &running{dir: d.dataDir}
	for _, file := range r.processes() {
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// script is a job of so many shells.
func script(id string, priority, count, memory int, kill time.Duration, text string) *client.Job {
	return &client.Job{ID: id, Priority: &priority, TaskGroups: []*client.TaskGroup{{
		Name: "g", Count: &count,
		Tasks: []*client.Task{{
			Name: "main", Driver: "exec", KillTimeout: &kill, Resources: &client.Resources{MemoryMB: &memory},
			Config: map[string]any{"command": "/bin/sh", "args": []string{"-c", text}},
		}},
	}}}
}

// awaitRunning waits until so many allocations of a job run, and gives their ids.
func awaitRunning(t *testing.T, c *client.Client, job string, count int) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	eventually(t, fmt.Sprintf("%d of %s run", count, job), func() bool {
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

// nanoseconds reads a time that a script wrote.
func nanoseconds(t *testing.T, file string) time.Time {
	t.Helper()
	b, err := os.ReadFile(file)
	do(t, err)
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	do(t, err)
	return time.Unix(0, n)
}

// A victim that ignores SIGTERM lives until its kill timeout is over; what evicted
// it starts once it is gone, and not before.
func TestAgents_PreemptorStartsWhenItsStubbornVictimIsGone(t *testing.T) {
	server := serverAt(t, "", kept)
	server.start()
	c := server.client()
	all := client.PreemptionConfig{SystemSchedulerEnabled: true, SysBatchSchedulerEnabled: true, BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true}
	_, err := c.Scheduler().Set(t.Context(), &client.SchedulerConfiguration{SchedulerAlgorithm: "binpack", PreemptionConfig: all}, nil)
	do(t, err)
	node := nodeOf(t, server, 1000)
	node.start()
	files := t.TempDir()
	at := func(name string) string { return filepath.Join(files, name) }
	const timeout = 1500 * time.Millisecond
	low := script("low", 20, 1, 900, timeout, fmt.Sprintf(
		`trap 'date +%%s%%N > %[1]s/term' TERM; echo $$ > %[1]s/pid; while :; do date +%%s%%N > %[1]s/beat.new; mv %[1]s/beat.new %[1]s/beat; sleep 0.02; done`, files))
	_, err = c.Jobs().Register(t.Context(), low, nil)
	do(t, err)
	awaitRunning(t, c, "low", 1)
	eventually(t, "the victim works", func() bool { _, err := os.Stat(at("beat")); return err == nil })
	high := script("high", 80, 1, 900, timeout, fmt.Sprintf(
		`date +%%s%%N > %[1]s/start; if kill -0 $(cat %[1]s/pid); then echo together; else echo alone; fi > %[1]s/seen.new; mv %[1]s/seen.new %[1]s/seen; while :; do sleep 0.1; done`, files))
	_, err = c.Jobs().Register(t.Context(), high, nil)
	do(t, err)
	awaitRunning(t, c, "high", 1)
	eventually(t, "the preemptor works", func() bool { _, err := os.Stat(at("seen")); return err == nil })
	seen, err := os.ReadFile(at("seen"))
	do(t, err)
	if string(seen) != "alone\n" {
		t.Errorf("when it started they were %s", seen)
	}
	asked, last, started := nanoseconds(t, at("term")), nanoseconds(t, at("beat")), nanoseconds(t, at("start"))
	t.Logf("the victim lived for %v after it was asked to end; what evicted it started %v later", last.Sub(asked), started.Sub(last))
	// The trap runs once the shell's sleep is over, and a beat is a moment old.
	if lived := last.Sub(asked); lived < timeout-500*time.Millisecond {
		t.Errorf("it was killed after %v: its kill timeout is %v", lived, timeout)
	}
	if started.Before(last) {
		t.Errorf("it started %v before its victim was gone", last.Sub(started))
	}
	for _, job := range []string{"low", "high"} {
		_, err := c.Jobs().Stop(t.Context(), job, nil)
		do(t, err)
	}
	eventually(t, "nobody is left", func() bool { return len(tasksOf(node)) == 0 })
}

// Work outlives the server, the agent, and both at once, however they end: it is
// found again, and nothing is started twice.
func TestAgents_WorkOutlivesServerAndAgent(t *testing.T) {
	server := serverAt(t, "", kept)
	server.start()
	node := nodeOf(t, server, 1000)
	node.start()
	c := server.client()
	starts := filepath.Join(t.TempDir(), "starts")
	_, err := c.Jobs().Register(t.Context(), script("web", 50, 3, 100, time.Second, fmt.Sprintf(`echo $$ >> %s; while :; do sleep 0.1; done`, starts)), nil)
	do(t, err)
	before := awaitRunning(t, c, "web", 3)
	began := func() string {
		b, err := os.ReadFile(starts)
		do(t, err)
		return string(b)
	}
	eventually(t, "each has begun", func() bool { return strings.Count(began(), "\n") == 3 })
	once := began()
	for _, e := range []struct {
		name string
		end  func()
	}{
		{"server killed", func() { server.kill(); server.start() }},
		{"server stopped", func() { server.stop(); server.start() }},
		{"agent killed", func() { node.kill(); node.start() }},
		{"agent stopped", func() { node.stop(); node.start() }},
		{"both killed", func() { node.kill(); server.kill(); server.start(); node.start() }},
		{"both killed, the agent comes back first", func() { server.kill(); node.kill(); node.begin(); server.start() }},
	} {
		t.Run(e.name, func(t *testing.T) {
			e.end()
			// Something new is placed and runs, so both have heard of each other again.
			id := strings.ReplaceAll(strings.ReplaceAll(e.name, ",", ""), " ", "-")
			_, err := c.Jobs().Register(t.Context(), script(id, 50, 1, 10, time.Second, `while :; do sleep 0.1; done`), nil)
			do(t, err)
			awaitRunning(t, c, id, 1)
			_, err = c.Jobs().Stop(t.Context(), id, nil)
			do(t, err)
			for id := range awaitRunning(t, c, "web", 3) {
				if !before[id] {
					t.Errorf("allocation %s is new", id)
				}
			}
			if now := began(); now != once {
				t.Errorf("something was started again: %q, %q before", now, once)
			}
			for line := range strings.Lines(once) {
				pid, err := strconv.Atoi(strings.TrimSpace(line))
				do(t, err)
				if err := syscall.Kill(pid, 0); err != nil {
					t.Errorf("process %d is gone", pid)
				}
			}
		})
	}
	_, err = c.Jobs().Stop(t.Context(), "web", nil)
	do(t, err)
	eventually(t, "nobody is left", func() bool { return len(tasksOf(node)) == 0 })
}
