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
)

// releaseBefore builds the command as it would be had it understood one version of the
// log less, and returns where it is.
func releaseBefore(t *testing.T) (program string) {
	t.Helper()
	if os.Getenv("CEDE_SOAK") == "" {
		t.Skip("a second release is compiled for this, which takes a minute; core/server plays the same in virtual time: set CEDE_SOAK=1 to wait for it")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the release before is built for this, and there is no go tool")
	}
	const newest, before = "Newest uint32 = 2", "Newest uint32 = 1"
	source, err := filepath.Abs("../../core/replication/version.go")
	do(t, err)
	text, err := os.ReadFile(source)
	do(t, err)
	if !strings.Contains(string(text), newest) {
		t.Fatalf("%s has no %q: say here what the newest version is now", source, newest)
	}
	dir := t.TempDir()
	older, overlay, program := filepath.Join(dir, "version.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "cede")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{source: older}})
	do(t, err, os.WriteFile(older, []byte(strings.Replace(string(text), newest, before, 1)), 0o600), os.WriteFile(overlay, replaced, 0o600))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// quit stops a server as an operator does: it hands the lead over.
func (s *poolServer) quit() {
	s.p.t.Helper()
	do(s.p.t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.awaitEnd()
	s.c.Close()
}

// awaitEnd waits until the process has ended by itself.
func (s *poolServer) awaitEnd() {
	s.p.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.p.t.Fatalf("server %s does not end", s.name)
	}
}

// version is that of the cluster, as the leader has it.
func (p *processPool) version() uint64 {
	p.t.Helper()
	st, err := p.leader().status()
	do(p.t, err)
	return st.Version
}

// limitEvictions asks for what no release before version 2 understands.
func (p *processPool) limitEvictions() error {
	most := 3
	_, err := p.c.Budgets().Put(p.t.Context(), &client.Budget{Name: "limit", MaxEvictions: &most, Window: time.Hour}, nil)
	return err
}

// Three servers get a new release one after the other, while people work with them. What
// is new is refused until the last one runs it; then the cluster's version rises, and the
// release before starts on none of them any more, and says why.
func TestPool_IsUpgradedServerByServer(t *testing.T) {
	before := releaseBefore(t)
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.program = before
		s.start()
	}
	p.leader()
	p.node("n1")
	h := newHistory(t, p.people(3))
	h.goesOn(20)
	for _, s := range p.servers {
		if now := p.version(); now != 1 {
			t.Fatalf("before %s is upgraded the cluster is at version %d", s.name, now)
		}
		s.quit()
		h.goesOn(10)
		s.program = ""
		if s == p.servers[len(p.servers)-1] { // now one of the others leads
			p.refusesWhatIsNew()
		}
		s.start()
		p.together()
		h.goesOn(10)
	}
	eventually(t, "the version of the cluster rises", func() bool { return p.version() == 2 })
	do(t, p.limitEvictions())

	back := p.follower(p.leader())
	back.quit()
	back.program = before
	back.start()
	back.awaitEnd()
	says(t, back.log.String(), "the cluster is at version 2", "understands versions 1 to 1", "the cluster does not go back")
	h.goesOn(10)
	back.program = ""
	back.start()
	p.together()
	h.end(p.c)
	p.settled([]string{"shared-0", "shared-1", "shared-2"})
	p.replayed()
}

// refusesWhatIsNew is what a leader of this release does while a server of the one before
// belongs to the cluster.
func (p *processPool) refusesWhatIsNew() {
	p.t.Helper()
	var err error
	eventually(p.t, "a leader answers", func() bool {
		err = p.limitEvictions()
		return !client.HasCode(err, client.CodeNoLeader) && !client.HasCode(err, client.CodeUnavailable)
	})
	if !client.HasCode(err, client.CodeConflict) {
		p.t.Errorf("what is new is answered by %v", err)
	}
	says(p.t, fmt.Sprint(err), "wait until every server runs the new release")
}

// together waits until one server leads and the others have what it has.
func (p *processPool) together() {
	p.t.Helper()
	eventually(p.t, "all servers are together", func() bool {
		lead := p.leader()
		for _, s := range p.servers {
			if s != lead && s.isBehind(lead) >= 100 {
				return false
			}
		}
		return true
	})
}
