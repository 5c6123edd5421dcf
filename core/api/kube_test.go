package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
)

// withKube configures the API with an extender for the server's policies.
func withKube(t *testing.T) func(*Config) {
	return func(c *Config) {
		server, ok := c.Server.(scheduler.Policies)
		if !ok {
			t.Fatal("the server has no policies")
		}
		var err error
		c.Kube, err = extender.New(extender.Config{Policies: server, Settings: func() *model.SchedulerConfig { return c.Server.Snapshot().Config() }})
		if err != nil {
			t.Fatal(err)
		}
		c.Security = true
	}
}

const kubeRequest = `{"Pod":{"metadata":{"name":"asker","namespace":"default","uid":"a"},"spec":{"priority":1000,"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}},
"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"name":"v1","namespace":"x","uid":"u1"},"spec":{"nodeName":"n1","priority":500,"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}]},
"n2":{"Pods":[{"metadata":{"name":"v2","namespace":"y","uid":"u2"},"spec":{"nodeName":"n2","priority":5,"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}]}},
"NodeNameToMetaVictims":null}`

// kube-scheduler sends its token as the password of its URL, and the active policy
// chooses the victims.
func TestKube_UsesTheActivePolicy(t *testing.T) {
	w := start(t, withKube(t))
	first, err := w.client.Operator().Bootstrap(t.Context())
	w.check(err)
	ask := func(secret, verb, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.Replace(w.url, "://", "://cede:"+secret+"@", 1)+"/kube/v1/"+verb, strings.NewReader(body))
		w.check(err)
		resp, err := w.http.Do(req)
		w.check(err)
		defer func() { _ = resp.Body.Close() }()
		var out json.RawMessage
		w.check(json.NewDecoder(resp.Body).Decode(&out))
		return resp.StatusCode, string(out)
	}
	if status, text := ask("wrong", "preempt", kubeRequest); status != http.StatusUnauthorized {
		t.Errorf("status %d with a wrong token: %s", status, text)
	}
	want := `{"NodeNameToMetaVictims":{"n2":{"Pods":[{"UID":"u2"}],"NumPDBViolations":0}}}`
	if status, text := ask(first.SecretID, "preempt", kubeRequest); status != http.StatusOK || text != want {
		t.Errorf("status %d, response %s, want %s", status, text, want)
	}
	if status, text := ask(first.SecretID, "filter", `{"NodeNames":["n1"]}`); status != http.StatusOK || !strings.Contains(text, `"NodeNames":["n1"]`) {
		t.Errorf("filter: %d %s", status, text)
	}
	if status, text := ask(first.SecretID, "preempt", "{"); status != http.StatusBadRequest || !strings.Contains(text, `"Code"`) {
		t.Errorf("half a request: %d %s", status, text)
	}
}

func TestKube_NotFoundWithoutExtender(t *testing.T) {
	w := start(t)
	if resp, text := w.send(http.MethodPost, "/kube/v1/preempt", "{}"); resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "has no kube-scheduler extender") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	for _, r := range kubeRoutes() {
		if len(r.roles) != 1 || r.roles[0] != acl.Operate || r.scope != scopeCluster {
			t.Errorf("%s permits the roles %v", r.name, r.roles)
		}
	}
}
