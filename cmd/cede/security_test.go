package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// A route is an operation of the API as described by the OpenAPI document.
type route struct {
	method, path string
	open         bool
	roles        []string
}

// readRoutes returns the routes in the OpenAPI document of a server.
func readRoutes(t *testing.T, url string) (list []route) {
	t.Helper()
	resp, err := http.Get(url + "/v1/openapi.json")
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	var document struct {
		Paths map[string]map[string]struct {
			Security *[]any   `json:"security"`
			Roles    []string `json:"x-cede-roles"`
		} `json:"paths"`
	}
	must(t, json.NewDecoder(resp.Body).Decode(&document))
	for path, methods := range document.Paths {
		for method, o := range methods {
			list = append(list, route{
				method: strings.ToUpper(method), path: strings.NewReplacer("{id}", "x", "{name}", "x", "{accessor}", "x").Replace(path),
				open: o.Security != nil && len(*o.Security) == 0, roles: o.Roles,
			})
		}
	}
	return list
}

// requestStatus sends a request with a token and returns the status code.
func requestStatus(t *testing.T, method, url, token string) int {
	t.Helper()
	resp := request(t, method, url, token)
	_ = resp.Body.Close() // event streams would not end otherwise
	return resp.StatusCode
}

// request sends a request with a token. The caller must close the body of the response.
func request(t *testing.T, method, url, token string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("{}"))
	must(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	return resp
}

// refusals are the responses to kube-scheduler without valid credentials, by path. Their
// status is 200, because kube-scheduler publishes the URL of a request with another status.
var refusals = map[string]string{
	"/kube/v1/filter":     `"Error":"missing or unknown credentials of kube-scheduler"`,
	"/kube/v1/prioritize": `[]`,
	"/kube/v1/preempt":    `{"NodeNameToMetaVictims":{}}`,
	"/kube/v1/bind":       `{"Error":"missing or unknown credentials of kube-scheduler"}`,
}

// expectRefusal checks that a request is refused with the status, or as kube-scheduler
// expects it.
func expectRefusal(t *testing.T, d *serverProcess, r route, token string, status int) {
	t.Helper()
	resp := request(t, r.method, d.url+r.path, token)
	defer func() { _ = resp.Body.Close() }()
	want, isVerb := refusals[r.path]
	if !isVerb {
		if resp.StatusCode != status {
			t.Errorf("%s %s: status %d, want %d", r.method, r.path, resp.StatusCode, status)
		}
		return
	}
	if got, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(got), want) {
		t.Errorf("%s %s: status %d, %s (%v), want 200, %s", r.method, r.path, resp.StatusCode, got, err, want)
	}
}

// Without a token the server serves only health and API description. A token with the role
// read cannot write. The log contains no secrets.
func TestSecurity_EveryRouteRequiresToken(t *testing.T) {
	t.Parallel()
	d := newServer(t, "", fullLogConfig+"\nacl: {enabled: true}\nlog: {level: debug}")
	d.start()
	d.readBootstrapToken()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	reader, err := d.client().Operator().TokenCreate(t.Context(), &client.TokenCreateRequest{Name: "reader", Roles: []string{"read"}})
	must(t, err)
	routes := readRoutes(t, d.url)
	if len(routes) < 80 {
		t.Fatalf("got %d routes, want at least 80", len(routes))
	}
	open := []string{"/livez", "/readyz", "/healthz", "/v1/agent/health", "/v1/openapi.json", "/v1/acl/bootstrap"}
	for _, r := range append(routes, route{method: "GET", path: "/v1/allocation/x/logs", roles: []string{"read"}}) {
		if r.open != slices.Contains(open, r.path) {
			t.Errorf("%s %s: open: %t", r.method, r.path, r.open)
		}
		if r.open {
			continue
		}
		for _, token := range []string{"", "wrong", d.token + "x"} {
			expectRefusal(t, d, r, token, http.StatusUnauthorized)
		}
		if may := len(r.roles) == 0 || slices.Contains(r.roles, "read"); !may {
			expectRefusal(t, d, r, reader.SecretID, http.StatusForbidden)
		}
	}
	if got := requestStatus(t, "PUT", d.url+"/v1/acl/bootstrap", ""); got < 400 || got >= 500 {
		t.Errorf("second bootstrap: status %d, want a client error", got)
	}
	secret := "a-secret-of-the-node-that-nobody-logs"
	const id = "11111111-1111-4111-8111-111111111111"
	_, err = d.client().NodeAgent().Register(t.Context(), &client.Node{ID: id, Name: "n", Datacenter: "dc1", Capacity: map[string]int64{"cpu": 1000}}, secret)
	must(t, err)
	if _, err := d.client().NodeAgent().Heartbeat(t.Context(), id, secret+"x"); err == nil {
		t.Error("heartbeat with a wrong node secret succeeded")
	}
	d.stop()
	for name, text := range map[string]string{"first token": d.token, "reader's token": reader.SecretID, "node's secret": secret} {
		if strings.Contains(d.allOutput.String(), text) {
			t.Errorf("log contains the %s", name)
		}
	}
	if !strings.Contains(d.allOutput.String(), `"level":"DEBUG"`) && !strings.Contains(d.allOutput.String(), `"msg":"request"`) {
		t.Error("log contains no requests, so the check for secrets proves nothing")
	}
}

// A token with the role submit in one namespace suffices to run, inspect and stop jobs of
// that namespace.
func TestSecurity_NamespaceTokenSuffices(t *testing.T) {
	t.Parallel()
	d := newServer(t, "", fullLogConfig+"\nacl: {enabled: true}")
	d.start()
	d.readBootstrapToken()
	file := filepath.Join(d.dir, "web.json")
	must(t, os.WriteFile(file, []byte(`{"Job": {"ID": "web", "Namespace": "web", "Datacenters": ["dc1"], "TaskGroups": [
		{"Name": "g", "Tasks": [{"Name": "main", "Driver": "sim"}]}]}}`), 0o600))
	stdout, stderr, code := d.cede("token", "create", "ci", "--role", "submit", "--namespace", "web", "--ttl", "720h", "-t", "{{.SecretID}}")
	if code != 0 {
		t.Fatal(stderr)
	}
	d.token = strings.TrimSpace(stdout)
	for _, c := range []struct {
		args string
		code int
	}{
		{"job run " + file, 6}, // no node exists, so placement fails
		{"job run " + file + " -o json", 6},
		{"job status web --namespace web", 0},
		{"eval list --job web --namespace web", 0},
		{"job stop web --namespace web", 0},
		{"job run " + file + " --detach", 0},
		{"job stop web --namespace web -o json", 0},
	} {
		if stdout, stderr, code := d.cede(strings.Fields(c.args)...); code != c.code || strings.Contains(stderr, "lacks access") {
			t.Errorf("cede %s: exit %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
	}
	d.stop()
}

// The server rejects requests that are too slow or too large and serves other clients
// meanwhile.
func TestSecurity_RejectsSlowAndLargeRequests(t *testing.T) {
	t.Parallel()
	d := newServer(t, "", fullLogConfig)
	d.start()
	for range 50 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "POST /v1/jobs HTTP/1.1\r\nHost: cede\r\nContent-Length: 100\r\n")
		must(t, err)
	}
	slow, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	must(t, err)
	t.Cleanup(func() { _ = slow.Close() })
	_, err = io.WriteString(slow, "POST /v1/jobs HTTP/1.1\r\nHost: cede\r\n") // the header never ends
	must(t, err)
	_, err = d.client().Jobs().Register(t.Context(), minimalJob("served"), nil)
	must(t, err)
	resp, err := http.Post(d.url+"/v1/jobs", "application/json", io.LimitReader(endlessReader{}, 64<<20))
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusRequestEntityTooLarge && resp.StatusCode != http.StatusBadRequest {
		t.Errorf("64 MiB: %d", resp.StatusCode)
	}
	header, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/v1/jobs", nil)
	must(t, err)
	header.Header.Set("X-Large", strings.Repeat("x", 1<<20))
	resp, err = http.DefaultClient.Do(header)
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("header of 1 MiB: status %d, want 431", resp.StatusCode)
		}
	}
	// The time to read a header is limited, so the server closes the incomplete request.
	must(t, slow.SetReadDeadline(time.Now().Add(testTimeout)))
	if _, err := io.Copy(io.Discard, slow); os.IsTimeout(err) {
		t.Error("connection with an incomplete header was not closed")
	}
	http.DefaultClient.CloseIdleConnections()
	_, _, err = d.client().Jobs().Get(t.Context(), "served", nil)
	must(t, err)
	d.stop()
}

// An endlessReader returns the letter x forever.
type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
