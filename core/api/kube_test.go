package api

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/core/kube/report"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/sdk/client"
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
	// With another status than 200, kube-scheduler would publish the token.
	if status, text := ask("wrong", "preempt", kubeRequest); status != http.StatusOK || !strings.Contains(text, `"u1"`) || !strings.Contains(text, `"u2"`) {
		t.Errorf("status %d with a wrong token: %s, want 200 and the proposal", status, text)
	}
	if status, text := ask("wrong", "filter", `{"NodeNames":["n1"]}`); status != http.StatusOK || !strings.Contains(text, `"Error":"missing or unknown credentials`) {
		t.Errorf("filter with a wrong token: %d %s", status, text)
	}
	made, err := w.connect(first.SecretID).Operator().TokenCreate(t.Context(), &client.TokenCreateRequest{Name: "kube-scheduler", Roles: []string{string(acl.Kubernetes)}})
	w.check(err)
	if _, _, err := w.connect(made.SecretID).Jobs().List(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "lacks the role") {
		t.Errorf("the role kubernetes permits other requests: %v", err)
	}
	want := `{"NodeNameToMetaVictims":{"n2":{"Pods":[{"UID":"u2"}],"NumPDBViolations":0}}}`
	if status, text := ask(made.SecretID, "preempt", kubeRequest); status != http.StatusOK || text != want {
		t.Errorf("status %d, response %s, want %s", status, text, want)
	}
	if status, text := ask(first.SecretID, "filter", `{"NodeNames":["n1"]}`); status != http.StatusOK || !strings.Contains(text, `"NodeNames":["n1"]`) {
		t.Errorf("filter: %d %s", status, text)
	}
	if status, text := ask(first.SecretID, "preempt", "{"); status != http.StatusOK || text != `{"NodeNameToMetaVictims":{}}` {
		t.Errorf("half a request: %d %s", status, text)
	}
}

// A body of an unsupported type is not processed. The status is 200 all the same.
func TestKube_AcceptsNoOtherContentType(t *testing.T) {
	w := start(t, withKube(t))
	first, err := w.client.Operator().Bootstrap(t.Context())
	w.check(err)
	for verb, want := range map[string]string{
		"preempt": `"u1"`, "filter": `"Error":"unsupported content type`, "prioritize": "[]", "bind": `"Error":"unsupported content type`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/kube/v1/"+verb, strings.NewReader(kubeRequest))
		w.check(err)
		req.Header.Set("Content-Type", "text/plain")
		req.SetBasicAuth("cede", first.SecretID)
		resp, err := w.http.Do(req)
		w.check(err)
		text, err := io.ReadAll(resp.Body)
		w.check(err)
		w.check(resp.Body.Close())
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %s, want 200 with %s", verb, resp.StatusCode, text, want)
		}
	}
}

func TestKube_NotFoundWithoutExtender(t *testing.T) {
	w := start(t)
	if resp, text := w.send(http.MethodPost, "/kube/v1/preempt", "{}"); resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "has no kube-scheduler extender") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	for _, r := range kubeRoutes() {
		if len(r.roles) != 1 || r.roles[0] != acl.Kubernetes || r.scope != scopeCluster {
			t.Errorf("%s permits the roles %v", r.name, r.roles)
		}
	}
}

// A controller reports with a token of the role kubernetes, and a reader lists what it
// reported.
func TestKubeReports_AreListed(t *testing.T) {
	w := start(t, func(c *Config) { c.KubeReports, c.Security = report.New(clock.Real{}), true })
	first, err := w.client.Operator().Bootstrap(t.Context())
	w.check(err)
	as := func(role acl.Role) *client.Client {
		made, err := w.connect(first.SecretID).Operator().TokenCreate(t.Context(), &client.TokenCreateRequest{Name: string(role), Roles: []string{string(role)}})
		w.check(err)
		return w.connect(made.SecretID)
	}
	controller, reader := as(acl.Kubernetes), as(acl.Read)
	r := &client.KubernetesReport{
		KubernetesController: client.KubernetesController{ID: "c1", Ready: true, Nodes: 3, Policy: "pool://rules", Time: 1},
		Decisions:            []*client.KubernetesDecision{{Node: "n1", Outcome: "chosen", Victims: []client.KubernetesPod{{Name: "v", UID: "u"}}, Reasons: []string{"n1 was the only option."}}},
	}
	w.check(controller.Kubernetes().Report(t.Context(), r))
	list, err := reader.Kubernetes().Controllers(t.Context())
	w.check(err)
	if len(list) != 1 || list[0].ID != "c1" || !list[0].Ready || list[0].Nodes != 3 || list[0].Time <= 1 {
		t.Errorf("controllers %+v", list)
	}
	decisions, err := reader.Kubernetes().Decisions(t.Context(), "c1")
	w.check(err)
	if len(decisions) != 1 || decisions[0].Controller != "c1" || decisions[0].Node != "n1" || len(decisions[0].Reasons) != 1 || len(decisions[0].Victims) != 1 {
		t.Errorf("decisions %+v", decisions)
	}
	if decisions, err := reader.Kubernetes().Decisions(t.Context(), "c2"); err != nil || len(decisions) != 0 {
		t.Errorf("decisions of another controller: %+v, %v", decisions, err)
	}
	if err := reader.Kubernetes().Report(t.Context(), r); err == nil || !strings.Contains(err.Error(), "lacks the role") {
		t.Errorf("a reader reports: %v", err)
	}
}

func TestKubeReports_NotFoundWithoutStore(t *testing.T) {
	w := start(t)
	for _, path := range []string{"controllers", "decisions"} {
		if resp, text := w.send(http.MethodGet, "/v1/kubernetes/"+path, ""); resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "stores no reports") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}
