package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// session is played against a server of the older binary. It writes entries of
// every area: jobs and their plans, configuration, classes, budgets, clusters,
// bindings, policies and tokens. A command that fails is skipped: the recorded
// log is the input of the comparison, and not its subject.
var session = [][]string{
	{"operator", "scheduler", "set", "--preempt-service=true", "--preempt-batch=true"},
	{"priority-class", "apply", "classes.yaml"},
	{"budget", "apply", "budget.yaml"},
	{"cluster", "apply", "cluster.yaml"},
	{"binding", "apply", "binding.yaml"},
	{"job", "run", "--detach", "index.hcl"},
	{"job", "run", "--detach", "render.hcl"},
	{"policy", "load", "least-waste", "--activate"},
	{"policy", "load", "least-waste?bands=20", "--name", "frugal", "--activate"},
	{"job", "run", "--detach", "shop.hcl"},
	{"node", "drain", "recorder"},
	{"node", "eligibility", "recorder", "--off"},
	{"node", "eligibility", "recorder", "--on"},
	{"job", "stop", "index"},
	{"operator", "snapshot", "save", "saved.snap"},
	{"job", "run", "--detach", "index.hcl"},
	{"policy", "rollback", "least-waste"},
	{"token", "create", "reader", "--role", "read"},
	{"binding", "delete", "web"},
	{"job", "stop", "render"},
}

var sessionFiles = map[string]string{
	"classes.yaml": "- {name: urgent, value: 80}\n- {name: low, value: 10, preemptionPolicy: Never}\n",
	"budget.yaml":  "- {name: shop, labels: {app: shop}, maxUnavailable: 1, enforcement: strict}\n",
	"cluster.yaml": "- {id: eu, capacity: {cpu: 8000, memory: 8192}}\n- {id: us, capacity: {cpu: 4000, memory: 8192}}\n",
	"binding.yaml": "- {id: web, priority: 40, replicas: 3, resources: {cpu: 500, memory: 256}}\n",
}

// replayLogs records a server's data directory with the older binary, stops the
// server, and compares the state that both binaries replay from it, after every
// tenth entry and at the end.
func (c *comparison) replayLogs() error {
	if !c.logs {
		return nil
	}
	data, err := c.record()
	if err != nil {
		return fmt.Errorf("record a log: %w", err)
	}
	args := []string{"operator", "doctor", data, "--replay", "-o", "json"}
	if err := c.compare("recorded log", args); err != nil {
		return err
	}
	for until := 5; until <= 200; until += 5 {
		if err := c.compare(fmt.Sprintf("recorded log up to %d", until), append(slices.Clip(args), "--until", fmt.Sprint(until))); err != nil {
			return err
		}
	}
	return nil
}

// record returns the data directory of a server that has played the session.
func (c *comparison) record() (dir string, err error) {
	dir = filepath.Join(c.dir, "data")
	for name, text := range sessionFiles {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"index.hcl", "render.hcl", "shop.hcl"} {
		text, err := os.ReadFile(filepath.Join(c.examples, "first-minutes", name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	address, err := freeAddress()
	if err != nil {
		return "", err
	}
	server := exec.Command(c.old, "agent", "--set", "name=recorder", "--set", "data_dir="+dir, "--set", "server.enabled=true",
		"--set", "server.bootstrap_expect=1", "--set", "client.enabled=true", "--set", "listen.http="+address, "--set", "listen.metrics=")
	server.Dir, server.Stderr = c.dir, os.Stderr
	if os.Getenv("SAMERESULTS_VERBOSE") == "" {
		server.Stderr = nil
	}
	if err := server.Start(); err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, server.Process.Signal(syscall.SIGTERM))
		_ = server.Wait() // the exit code of a server that was stopped is not part of the comparison
	}()
	if err := waitFor(address); err != nil {
		return "", err
	}
	for _, args := range session {
		cmd := exec.Command(c.old, args...)
		cmd.Dir = c.dir
		cmd.Env = append(os.Environ(), "CEDE_ADDR=http://"+address)
		if out, err := cmd.CombinedOutput(); err != nil && os.Getenv("SAMERESULTS_VERBOSE") != "" {
			fmt.Fprintf(os.Stderr, "%v: %v: %s", args, err, out)
		}
	}
	time.Sleep(2 * time.Second) // heartbeats and reports of tasks become entries
	return dir, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// waitFor waits until the server accepts connections.
func waitFor(address string) error {
	for range 200 {
		if conn, err := net.Dial("tcp", address); err == nil {
			return conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("no server listens on %s after 10 s", address)
}
