package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// buildPreviousRelease builds the command with the previous version of the log as its
// newest one and returns the path of the program.
func buildPreviousRelease(t *testing.T) (program string) {
	t.Helper()
	if !soak.Full() {
		t.Skip("compiles a second release, which takes a minute; core/server tests the same in virtual time: set CEDE_SOAK=1 to run this test")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("requires the go tool to build the previous release")
	}
	const newest, before = "Newest uint32 = 2", "Newest uint32 = 1"
	source, err := filepath.Abs("../../core/replication/version.go")
	must(t, err)
	text, err := os.ReadFile(source)
	must(t, err)
	if !strings.Contains(string(text), newest) {
		t.Fatalf("%s does not contain %q: update the versions in this test", source, newest)
	}
	dir := t.TempDir()
	older, overlay, program := filepath.Join(dir, "version.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "cede")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{source: older}})
	must(t, err, os.WriteFile(older, []byte(strings.Replace(string(text), newest, before, 1)), 0o600), os.WriteFile(overlay, replaced, 0o600))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// terminate stops a server with SIGTERM, so that it transfers leadership first.
func (s *poolServer) terminate() {
	s.p.t.Helper()
	must(s.p.t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.waitExit()
	s.c.Close()
}

// waitExit waits until the process has exited.
func (s *poolServer) waitExit() {
	s.p.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(testTimeout):
		s.p.t.Fatalf("server %s did not exit", s.name)
	}
}

// clusterVersion returns the version of the cluster as reported by the leader.
func (p *processPool) clusterVersion() uint64 {
	p.t.Helper()
	st, err := p.waitLeader().status()
	must(p.t, err)
	return st.Version
}

// limitEvictions registers a budget of a kind that requires version 2.
func (p *processPool) limitEvictions() error {
	most := 3
	_, err := p.c.Budgets().Put(p.t.Context(), &client.Budget{Name: "limit", MaxEvictions: &most, Window: time.Hour}, nil)
	return err
}

// Three servers are upgraded in turn under load. New features are refused until the last
// server is upgraded. The cluster version then rises, and the previous release refuses to
// start with a reason.
func TestPool_RollingUpgrade(t *testing.T) {
	t.Parallel()
	before := buildPreviousRelease(t)
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.program = before
		s.start()
	}
	p.waitLeader()
	p.startNode("n1")
	h := newHistory(t, p.clients(3))
	h.waitWrites(20)
	for _, s := range p.servers {
		if now := p.clusterVersion(); now != 1 {
			t.Fatalf("cluster has version %d before %s is upgraded, want 1", now, s.name)
		}
		s.terminate()
		h.waitWrites(10)
		s.program = ""
		if s == p.servers[len(p.servers)-1] { // the leader is an upgraded server
			p.checkNewFeatureRefused()
		}
		s.start()
		p.waitConverged()
		h.waitWrites(10)
	}
	eventually(t, "the cluster version is 2", func() bool { return p.clusterVersion() == 2 })
	must(t, p.limitEvictions())

	back := p.follower(p.waitLeader())
	back.terminate()
	back.program = before
	back.start()
	back.waitExit()
	checkContains(t, back.log.String(), "the cluster has version 2", "supports versions up to 1", "start the release that wrote it")
	h.waitWrites(10)
	back.program = ""
	back.start()
	p.waitConverged()
	h.check(p.c)
	p.checkConverged([]string{"shared-0", "shared-1", "shared-2"})
	p.checkReplay()
}

// checkNewFeatureRefused verifies that an upgraded leader refuses features that require the
// new version while a server of the previous release is a member.
func (p *processPool) checkNewFeatureRefused() {
	p.t.Helper()
	var err error
	eventually(p.t, "a leader answers", func() bool {
		err = p.limitEvictions()
		return !client.HasCode(err, client.CodeNoLeader) && !client.HasCode(err, client.CodeUnavailable)
	})
	if !client.HasCode(err, client.CodeConflict) {
		p.t.Errorf("new feature returned %v, want %s", err, client.CodeConflict)
	}
	checkContains(p.t, fmt.Sprint(err), "wait until every server runs the new release")
}

// waitConverged waits until a server leads and the others have nearly all of its entries.
func (p *processPool) waitConverged() {
	p.t.Helper()
	eventually(p.t, "all servers have converged", func() bool {
		lead := p.waitLeader()
		for _, s := range p.servers {
			if s != lead && s.lag(lead) >= 100 {
				return false
			}
		}
		return true
	})
}
