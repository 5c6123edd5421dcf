package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/kube/apiservertest"
	"github.com/cede-scheduler/cede/sdk/client"
)

// startServer starts a server that enforces ACLs. The flags override its defaults.
func startServer(t *testing.T, flags map[string]string) *app.Process {
	t.Helper()
	log := &lockedBuffer{}
	all := map[string]string{
		"server.enabled": "true", "data_dir": t.TempDir(), "listen.http": "127.0.0.1:0", "listen.rpc": "127.0.0.1:0", "listen.metrics": "", "acl.enabled": "true",
		"acl.bootstrap_file": filepath.Join(t.TempDir(), "bootstrap.token"),
	}
	maps.Copy(all, flags)
	c, err := config.Load(config.Sources{Flags: all})
	if err != nil {
		t.Fatal(err)
	}
	p, err := app.Start(t.Context(), app.Options{Config: c, Build: app.Build{Version: "test"}, Stderr: log, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Stop(ctx); err != nil {
			t.Errorf("stop: %v\n%s", err, log)
		}
	})
	return p
}

// startServers starts a pool of one server that enforces ACLs. It returns a client with all
// permissions. The flags override the server's defaults.
func startServers(t *testing.T, flags map[string]string) (*app.Process, *client.Client) {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "bootstrap.token")
	all := map[string]string{"acl.bootstrap_file": secret}
	maps.Copy(all, flags)
	p := startServer(t, all)
	var text []byte
	for deadline := time.Now().Add(time.Minute); len(text) == 0; time.Sleep(5 * time.Millisecond) { // the leader writes it
		var err error
		if text, err = os.ReadFile(secret); err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	return p, dial(t, p.URL(), strings.TrimSpace(string(text)))
}

func dial(t *testing.T, address, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Address: address, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// activate loads a version of the policy rules and activates it. It returns its ID.
func activate(t *testing.T, c *client.Client, load *client.PolicyLoad) string {
	t.Helper()
	load.Name, load.Wait = "rules", time.Minute
	v, err := c.Policies().Load(t.Context(), load)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Policies().Activate(t.Context(), "rules", v.ID); err != nil {
		t.Fatal(err)
	}
	return v.ID
}

// A controller runs the active version of a policy of its pool, also a module that the
// pool received. Activations and rollbacks there reach it, and it reports its state and
// its decisions with their reasons. Its token has the role kubernetes.
func TestKubernetes_FollowsAndReportsToPool(t *testing.T) {
	t.Parallel()
	servers, all := startServers(t, nil)
	token, err := all.Operator().TokenCreate(t.Context(), &client.TokenCreateRequest{Name: "controller", Roles: []string{"kubernetes"}})
	if err != nil {
		t.Fatal(err)
	}
	lenient := activate(t, all, &client.PolicyLoad{Builtin: "protect", Config: json.RawMessage(`{"minRuntime":"1s"}`)})
	api := apiservertest.New()
	low := pod("low", "n1", 1)
	api.Put(node("n1"), low)
	w := start(t, api, newClient(), map[string]string{
		"name": "controller-1", "kubernetes.policy": "pool://rules", "kubernetes.servers": servers.URL(), "kubernetes.server_token": token.SecretID,
		"kubernetes.policy_interval": "1h", // changes arrive without it
	})
	w.ready()
	controller := func() *client.KubernetesController {
		list, err := all.Kubernetes().Controllers(t.Context())
		if err != nil || len(list) != 1 {
			return &client.KubernetesController{}
		}
		return list[0]
	}
	follows := func(version string) {
		t.Helper()
		w.eventually("the controller runs "+version, func() bool { return controller().PolicyVersion == version })
	}
	follows(lenient)
	w.eventually("the controller is ready", func() bool { return controller().Ready })
	if c := controller(); c.ID != "controller-1" || c.Nodes != 1 || c.Pods != 1 || c.Policy != "pool://rules" || c.Version != "test" {
		t.Errorf("state %+v", c)
	}
	n := 0
	evicts := func() bool {
		t.Helper()
		n++
		pending := pod(fmt.Sprintf("pending-%d", n), "", 1000)
		api.Put(pending)
		defer api.Delete(pending) // it no longer needs the place of its victim
		_, text := w.send(http.MethodPost, "/kube/v1/preempt?onFault=none", "", proposal(pending, low))
		if !strings.Contains(text, names("uid-low")) {
			return false
		}
		api.Delete(low)
		defer api.Put(low)
		w.eventually("the eviction is reported", func() bool {
			list, err := all.Kubernetes().Decisions(t.Context(), "controller-1")
			if err != nil || len(list) == 0 || list[0].Outcome != "chosen" || list[0].Pod.Name != pending.Name {
				return false
			}
			if d := list[0]; d.Node != "n1" || d.Pod.Priority != 1000 || len(d.Victims) != 1 || d.Victims[0].Name != "low" || len(d.Reasons) == 0 || d.PolicyVersion != controller().PolicyVersion {
				t.Errorf("decision %+v", d)
			}
			return true
		})
		return true
	}
	w.eventually("the pod is evicted", evicts)

	strict := activate(t, all, &client.PolicyLoad{Builtin: "protect", Config: json.RawMessage(`{"minRuntime":"8760h"}`)})
	follows(strict)
	if evicts() {
		t.Error("the pod is evicted, but it is protected")
	}
	if _, err := all.Policies().Rollback(t.Context(), "rules"); err != nil {
		t.Fatal(err)
	}
	follows(lenient)

	code, err := os.ReadFile("../../../../sdk/abi/testdata/guests/decay-c.wasm")
	if err != nil {
		t.Fatal(err)
	}
	follows(activate(t, all, &client.PolicyLoad{Module: code}))
	w.eventually("the module evicts the pod", evicts)
}

// A controller that loses its pool continues with the version that it has.
func TestKubernetes_ContinuesWithoutPool(t *testing.T) {
	t.Parallel()
	servers, all := startServers(t, nil)
	token, err := all.Operator().TokenCreate(t.Context(), &client.TokenCreateRequest{Name: "controller", Roles: []string{"kubernetes"}})
	if err != nil {
		t.Fatal(err)
	}
	activate(t, all, &client.PolicyLoad{Builtin: "kubernetes"})
	api := apiservertest.New()
	low := pod("low", "n1", 1)
	api.Put(node("n1"), low)
	w := start(t, api, newClient(), map[string]string{"kubernetes.policy": "pool://rules", "kubernetes.servers": servers.URL(), "kubernetes.server_token": token.SecretID})
	w.ready()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := servers.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	w.eventually("the loss is logged", func() bool { return strings.Contains(w.log.String(), `"msg":"reload failed"`) })
	if _, text := w.send(http.MethodPost, "/kube/v1/preempt?onFault=none", "", proposal(pod("pending", "", 1000), low)); !strings.Contains(text, names("uid-low")) {
		t.Errorf("%s, want low\n%s", text, w.log)
	}
}

// A controller follows its pool through another server when the first one is gone: a version
// that is activated then reaches it, and it reports to a server that remains.
func TestKubernetes_FailsOverBetweenServers(t *testing.T) {
	t.Parallel()
	gossip := map[string]string{"listen.gossip": "127.0.0.1:0"}
	first, all := startServers(t, gossip)
	token, err := all.Operator().TokenCreate(t.Context(), &client.TokenCreateRequest{Name: "controller", Roles: []string{"management"}})
	if err != nil {
		t.Fatal(err)
	}
	members, err := all.Status().Members(t.Context())
	if err != nil || len(members.Members) != 1 {
		t.Fatalf("members %+v: %v", members, err)
	}
	gossip["server.join"] = fmt.Sprintf("%s:%d", members.Members[0].Addr, members.Members[0].Port)
	second, third := startServer(t, gossip), startServer(t, gossip)
	rest := dial(t, second.URL()+","+third.URL(), token.SecretID)
	before := activate(t, all, &client.PolicyLoad{Builtin: "protect", Config: json.RawMessage(`{"minRuntime":"1s"}`)})
	api := apiservertest.New()
	api.Put(node("n1"), pod("low", "n1", 1))
	w := start(t, api, newClient(), map[string]string{
		"name": "controller-1", "kubernetes.policy": "pool://rules", "kubernetes.server_token": token.SecretID,
		"kubernetes.servers": strings.Join([]string{first.URL(), second.URL(), third.URL()}, ","),
	})
	w.ready()
	reports := func(c *client.Client, version string) func() bool {
		return func() bool {
			list, err := c.Kubernetes().Controllers(t.Context())
			return err == nil && len(list) == 1 && list[0].PolicyVersion == version
		}
	}
	w.eventually("the controller reports to the first server", reports(all, before))
	w.eventually("the other servers are voters", func() bool {
		c, err := all.Operator().RaftConfiguration(t.Context())
		return err == nil && len(c.Servers) == 3 && !slices.ContainsFunc(c.Servers, func(s *client.RaftServer) bool { return !s.Voter })
	})
	// Every voter checks a version before it may be activated, so it is loaded before.
	v, err := all.Policies().Load(t.Context(), &client.PolicyLoad{Name: "rules", Builtin: "protect", Config: json.RawMessage(`{"minRuntime":"8760h"}`), Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := first.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	w.eventually("the version is active", func() bool {
		_, err := rest.Policies().Activate(t.Context(), "rules", v.ID)
		return err == nil
	})
	here, there := reports(dial(t, second.URL(), token.SecretID), v.ID), reports(dial(t, third.URL(), token.SecretID), v.ID)
	w.eventually("the controller runs it", func() bool { return here() || there() })
}
