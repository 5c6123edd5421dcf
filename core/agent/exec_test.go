//go:build linux

package agent_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/agent"
	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/agent/driver/exec"
	"github.com/cede-scheduler/cede/core/agent/driver/sim"
	"github.com/cede-scheduler/cede/core/internal/checkedfile"
	"github.com/cede-scheduler/cede/sdk/client"
)

// startExec starts an agent that runs processes. The test fails if processes of its
// directory remain.
func startExec(t *testing.T, c *cluster, dir string, change func(*agent.Config)) *node {
	t.Helper()
	d, err := exec.New(exec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, c, func(conf *agent.Config) {
		conf.DataDir = dir
		conf.StopAll = true
		conf.Drivers = map[string]driver.Driver{"exec": d, "sim": sim.Driver{}}
		if change != nil {
			change(conf)
		}
	})
}

// dataDir returns a directory. The test fails if processes that use it remain.
func dataDir(t *testing.T) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		if left := processesOf(dir); len(left) > 0 {
			t.Errorf("orphans: %v", left)
		}
	})
	return dir
}

// processesOf returns the processes, including supervisors, that use a directory.
func processesOf(dir string) (list []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		b, err := os.ReadFile(file)
		if err == nil && bytes.Contains(b, []byte("CEDE_TASK_FOLDER="+dir+"/")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			list = append(list, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return list
}

func TestExec_PreemptorStartsAfterKilledVictim(t *testing.T) {
	c, dir := newCluster(), dataDir(t)
	startExec(t, c, dir, nil)
	log := filepath.Join(t.TempDir(), "log")
	victim := shell("victim", `trap 'date +%s.%N >`+log+`' TERM; echo up; while :; do sleep 0.05; done`)
	victim.Tasks[0].KillTimeout = time.Second
	c.place(victim)
	c.await(t, "victim", agent.StatusRunning)
	awaitLog(t, dir, "victim", "up")
	asked := time.Now()
	c.do(func() {
		c.unwant("victim")
		c.allocs["heir"] = shell("heir", `date +%s.%N; sleep 1000`, "victim")
	})
	c.await(t, "heir", agent.StatusRunning)
	c.await(t, "victim", agent.StatusComplete)
	eventually(t, "the victim was signalled", func() bool { b, _ := os.ReadFile(log); return len(b) > 0 })
	if after := c.last("heir").Started.Sub(asked); after < time.Second {
		t.Errorf("it started %v after the victim received SIGTERM; the kill timeout is 1 s", after)
	}
	if !strings.Contains(awaitLog(t, dir, "heir", "."), ".") {
		t.Error("it has no output")
	}
	var rec struct {
		Tasks map[string]struct{ Exit driver.Exit }
	}
	readRecord(t, dir, "victim", &rec)
	exit := rec.Tasks["main"].Exit
	if exit.Signal != "SIGKILL" {
		t.Errorf("the victim ended with %+v, want SIGKILL", exit)
	}
	if c.last("heir").Started.Before(exit.Time) {
		t.Errorf("it started at %v, before its victim was gone at %v", c.last("heir").Started, exit.Time)
	}
}

func readRecord(t *testing.T, dir, id string, into any) {
	t.Helper()
	b, _, err := checkedfile.Read(filepath.Join(dir, "allocs", id, "state.json"))
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitLog waits until the output of a task contains want, and returns the output.
func awaitLog(t *testing.T, dir, id, want string) (text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("output of %s contains %q", id, want), func() bool {
		b, _ := os.ReadFile(filepath.Join(dir, "allocs", id, "main", "stdout.0"))
		text = string(b)
		return strings.Contains(text, want)
	})
	return text
}

func TestExec_TasksSurviveAgentRestart(t *testing.T) {
	c, dir := newCluster(), dataDir(t)
	leave := func(conf *agent.Config) { conf.StopAll = false }
	first := startExec(t, c, dir, leave)
	c.place(
		shell("long", `echo up $$; while [ ! -e go ]; do sleep 0.02; done; echo went on; exit 4`),
		shell("short", `echo up; while [ ! -e go ]; do sleep 0.02; done; exit 0`),
	)
	c.await(t, "long", agent.StatusRunning)
	c.await(t, "short", agent.StatusRunning)
	pid := awaitLog(t, dir, "long", "up")
	awaitLog(t, dir, "short", "up")
	first.stop()
	if n := len(processesOf(dir)); n < 4 {
		t.Fatalf("%d processes outlive the agent, want two tasks and their supervisors", n)
	}
	goOn := func(id string) {
		if err := os.WriteFile(filepath.Join(dir, "allocs", id, "main", "work", "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goOn("short") // while no agent runs
	exit := filepath.Join(dir, "allocs", "short", "main", "exit.json")
	eventually(t, "its exit code is kept", func() bool { _, err := os.Stat(exit); return err == nil })

	startExec(t, c, dir, nil)
	c.await(t, "short", agent.StatusComplete)
	if c.status("long") != agent.StatusRunning {
		t.Fatalf("status of the running task is %s", c.status("long"))
	}
	goOn("long")
	c.await(t, "long", agent.StatusFailed)
	if text := c.last("long").Text; text != "task main exited with code 4" {
		t.Errorf("it failed with %q", text)
	}
	if out := awaitLog(t, dir, "long", "went on"); !strings.HasPrefix(out, pid) || strings.Count(out, "up") != 1 {
		t.Errorf("output %q: was it started twice?", out)
	}
}

// A kill timeout continues while the agent restarts.
func TestExec_StopContinuesAfterRestart(t *testing.T) {
	c, dir := newCluster(), dataDir(t)
	first := startExec(t, c, dir, func(conf *agent.Config) { conf.StopAll = false })
	a := shell("a", `trap "" TERM; echo up; while :; do sleep 0.05; done`)
	a.Tasks[0].KillTimeout = 1500 * time.Millisecond
	c.place(a)
	awaitLog(t, dir, "a", "up")
	c.await(t, "a", agent.StatusRunning)
	c.stop("a")
	eventually(t, "it is asked to stop", func() bool {
		var rec struct{ Stopping time.Time }
		readRecord(t, dir, "a", &rec)
		return !rec.Stopping.IsZero()
	})
	first.stop()
	startExec(t, c, dir, nil)
	c.await(t, "a", agent.StatusComplete)
}

func TestLogs_OffsetsStreamsFollowAndErrors(t *testing.T) {
	c, dir := newCluster(), dataDir(t)
	n := startExec(t, c, dir, func(conf *agent.Config) {
		conf.Authorize = nil
	})
	srv := httptest.NewServer(n.Handler())
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	c.place(shell("abc", `printf 0123456789; echo trouble >&2; while [ ! -e go ]; do sleep 0.02; done; printf end`))
	awaitLog(t, dir, "abc", "9")
	get := func(path string) (int, string) {
		resp, err := srv.Client().Get(srv.URL + strings.Replace("/v1/allocation/"+path, "allocation/../", "", 1))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	eventually(t, "stderr is there", func() bool { _, s := get("abc/logs?stream=stderr"); return s == "trouble\n" })
	for path, want := range map[string]string{
		"abc/logs": "0123456789", "ab/logs?offset=7": "789", "abc/logs?offset=-2&task=main": "89", "abc/logs?offset=99": "", "abc/logs?type=stderr&offset=3": "uble\n",
	} {
		if code, got := get(path); code != http.StatusOK || got != want {
			t.Errorf("%s: %d %q, want %q", path, code, got, want)
		}
	}
	// Nomad's clients count offsets from an origin, and read frames.
	frame := func(offset int, data, stream string) string {
		return fmt.Sprintf(`{"Offset":%d,"Data":%q,"File":"main.%s.0"}`+"\n", offset, base64.StdEncoding.EncodeToString([]byte(data)), stream)
	}
	for query, want := range map[string]string{
		"type=stdout&origin=start&offset=7": frame(7, "789", "stdout"), "type=stdout&origin=end&offset=2": frame(8, "89", "stdout"),
		"type=stdout&origin=end": "", "type=stderr&origin=start&offset=0&plain=true": "trouble\n",
	} {
		if code, got := get("../client/fs/logs/abc?task=main&" + query); code != http.StatusOK || got != want {
			t.Errorf("%s: %d %q, want %q", query, code, got, want)
		}
	}
	if code, got := get("../client/fs/logs/abc?origin=middle"); code != http.StatusBadRequest {
		t.Errorf("an unknown origin: %d %s", code, got)
	}
	for path, want := range map[string]client.Error{
		"xyz/logs":                       {StatusCode: 404, Code: client.CodeNotFound},
		"abc/logs?task=other":            {StatusCode: 404, Code: client.CodeNotFound},
		"abc/logs?stream=x&offset=y":     {StatusCode: 400, Code: client.CodeInvalid},
		"abc/logs?follow=perhaps&task=a": {StatusCode: 400, Code: client.CodeInvalid},
	} {
		code, body := get(path)
		var e client.Error
		if err := json.Unmarshal([]byte(body), &e); err != nil || code != want.StatusCode || e.Code != want.Code || e.Message == "" {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	resp, err := srv.Client().Get(srv.URL + "/v1/allocation/abc/logs?follow=true&offset=8")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewReader(resp.Body)
	if b, err := in.Peek(2); err != nil || string(b) != "89" {
		t.Fatalf("followed from %q, %v", b, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "allocs", "abc", "main", "work", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(in); err != nil || string(b) != "89end" {
		t.Errorf("followed to %q, %v", b, err)
	}
}

func TestLogs_RequireAuthorization(t *testing.T) {
	c := newCluster()
	n := start(t, c, func(conf *agent.Config) {
		conf.Authorize = authorizeOnly("good")
	})
	c.place(simulated("a", ``))
	c.await(t, "a", agent.StatusRunning)
	for token, want := range map[string]int{"": 403, "bad": 403, "good": 200} {
		r := httptest.NewRequest(http.MethodGet, "/v1/allocation/a/logs", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		n.Handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("with token %q: %d %s", token, w.Code, w.Body)
		}
	}
}
