package app

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// The console shows the state of a running server in a browser, and follows it. Stories are
// in core/web/ui/test/browser.mjs. The variables CEDE_STORY=NAME, to play one story, and
// CEDE_PICTURES=rewrite, to replace the golden pictures, are passed on.
func TestConsole_PlaysStoriesInBrowser(t *testing.T) {
	ui, err := filepath.Abs("../../../core/web/ui")
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: apt-get install nodejs")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	if _, err := os.Stat(filepath.Join(ui, "node_modules/playwright-core")); err != nil {
		t.Skip("playwright-core is not installed: npm --prefix core/web/ui ci")
	}
	s := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"server.heartbeat.ttl": "1h", "client.enabled": "false"})}))
	for i := range 2 {
		n := &client.Node{ID: fmt.Sprintf("node-%d", i+1), Datacenter: "dc1", Capacity: map[string]int64{"cpu": 4000, "memory": 8192}}
		if _, err := s.c.NodeAgent().Register(t.Context(), n, "secret-of-"+n.ID); err != nil {
			t.Fatal(err)
		}
	}
	for _, j := range []struct {
		id              string
		priority, count int
	}{{"low", 20, 8}, {"high", 80, 1}, {"huge", 10, 3}} {
		g := &client.TaskGroup{Name: "g", Count: new(j.count), Tasks: []*client.Task{{Name: "t", Driver: "sim", Resources: &client.Resources{CPU: new(1000), MemoryMB: new(256)}}}}
		if _, err := s.c.Jobs().Register(t.Context(), &client.Job{ID: j.id, Type: "service", Priority: new(j.priority), TaskGroups: []*client.TaskGroup{g}}, nil); err != nil {
			t.Fatal(err)
		}
		if j.id == "low" {
			eventually(t, "low fills the nodes", func() bool {
				list, _, err := s.c.Jobs().Allocations(t.Context(), "low", nil)
				return err == nil && len(list) == j.count
			})
		}
	}
	loadTwoVersions(t, s.c)
	secret := filepath.Join(t.TempDir(), "bootstrap.token")
	secure := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"server.heartbeat.ttl": "1h", "client.enabled": "false", "acl.enabled": "true", "acl.bootstrap_file": secret})}))
	text, err := os.ReadFile(secret)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(text))
	registrar, err := client.New(client.Config{Address: secure.URL(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registrar.Close)
	if _, err := registrar.NodeAgent().Register(t.Context(), &client.Node{ID: "node-1", Datacenter: "dc1", Capacity: map[string]int64{"cpu": 4000}}, "secret-of-node-1"); err != nil {
		t.Fatal(err)
	}
	// Every step of a story has a limit of its own; this one ends a browser that hangs altogether.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "test/browser.mjs")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // which ends the browser too
	cmd.Dir = ui
	cmd.Env = append(os.Environ(), "CEDE_URL="+s.URL(), "CEDE_CHROMIUM="+chromium, "CEDE_SECURE_URL="+secure.URL(), "CEDE_SECURE_TOKEN="+token,
		"CEDE_EVENTS="+strconv.Itoa(soak.Count(8_000, 50_000)))
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || strings.Contains(string(out), "not ok") {
		t.Errorf("stories: %v", err)
	}
}

// loadTwoVersions loads two versions of the policy thrifty, and activates the first one.
func loadTwoVersions(t *testing.T, c *client.Client) {
	t.Helper()
	for _, bands := range []string{"10", "20"} {
		v, err := c.Policies().Load(t.Context(), &client.PolicyLoad{Name: "thrifty", Builtin: "least-waste", Config: []byte(`{"bands":` + bands + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		if bands == "20" {
			return
		}
		if _, err := c.Policies().Activate(t.Context(), "thrifty", v.ID); err != nil {
			t.Fatal(err)
		}
	}
}
