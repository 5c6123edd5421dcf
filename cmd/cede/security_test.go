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

// asked is one route of the API, as its description has it.
type asked struct {
	method, path string
	open         bool
	roles        []string
}

// routesOf reads what the server says of itself.
func routesOf(t *testing.T, url string) (list []asked) {
	t.Helper()
	resp, err := http.Get(url + "/v1/openapi.json")
	do(t, err)
	defer func() { _ = resp.Body.Close() }()
	var document struct {
		Paths map[string]map[string]struct {
			Security *[]any   `json:"security"`
			Roles    []string `json:"x-cede-roles"`
		} `json:"paths"`
	}
	do(t, json.NewDecoder(resp.Body).Decode(&document))
	for path, methods := range document.Paths {
		for method, o := range methods {
			list = append(list, asked{
				method: strings.ToUpper(method), path: strings.NewReplacer("{id}", "x", "{name}", "x", "{accessor}", "x").Replace(path),
				open: o.Security != nil && len(*o.Security) == 0, roles: o.Roles,
			})
		}
	}
	return list
}

// status asks as the bearer of a token, and gives what came of it.
func status(t *testing.T, method, url, token string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("{}"))
	do(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	do(t, err)
	_ = resp.Body.Close() // streams do not end
	return resp.StatusCode
}

// Without a token a server says how it is and what it can be asked, and nothing
// else; who may read may not write. No secret is ever in the log.
func TestSecurity_EveryRouteAsksWhoItIs(t *testing.T) {
	d := serverAt(t, "", kept+"\nacl: {enabled: true}\nlog: {level: debug}")
	d.start()
	d.firstToken()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	reader, err := d.client().Operator().TokenCreate(t.Context(), &client.TokenCreateRequest{Name: "reader", Roles: []string{"read"}})
	do(t, err)
	routes := routesOf(t, d.url)
	if len(routes) < 80 {
		t.Fatalf("%d routes", len(routes))
	}
	open := []string{"/livez", "/readyz", "/healthz", "/v1/agent/health", "/v1/openapi.json", "/v1/acl/bootstrap"}
	for _, r := range append(routes, asked{method: "GET", path: "/v1/allocation/x/logs", roles: []string{"read"}}) {
		if r.open != slices.Contains(open, r.path) {
			t.Errorf("%s %s: open: %t", r.method, r.path, r.open)
		}
		if r.open {
			continue
		}
		for _, token := range []string{"", "wrong", d.token + "x"} {
			if got := status(t, r.method, d.url+r.path, token); got != http.StatusUnauthorized {
				t.Errorf("%s %s without a token that is known: %d", r.method, r.path, got)
			}
		}
		if may := len(r.roles) == 0 || slices.Contains(r.roles, "read"); !may {
			if got := status(t, r.method, d.url+r.path, reader.SecretID); got != http.StatusForbidden {
				t.Errorf("%s %s by who may read: %d", r.method, r.path, got)
			}
		}
	}
	if got := status(t, "PUT", d.url+"/v1/acl/bootstrap", ""); got < 400 || got >= 500 {
		t.Errorf("a second first token: %d", got)
	}
	secret := "a-secret-of-the-node-that-nobody-logs"
	const id = "11111111-1111-4111-8111-111111111111"
	_, err = d.client().NodeAgent().Register(t.Context(), &client.Node{ID: id, Name: "n", Datacenter: "dc1", Capacity: map[string]int64{"cpu": 1000}}, secret)
	do(t, err)
	if _, err := d.client().NodeAgent().Heartbeat(t.Context(), id, secret+"x"); err == nil {
		t.Error("another secret does for the node")
	}
	d.stop()
	for name, text := range map[string]string{"first token": d.token, "reader's token": reader.SecretID, "node's secret": secret} {
		if strings.Contains(d.all.String(), text) {
			t.Errorf("the %s is in the log", name)
		}
	}
	if !strings.Contains(d.all.String(), `"level":"DEBUG"`) && !strings.Contains(d.all.String(), `"msg":"request"`) {
		t.Error("nothing was logged that could hold a secret")
	}
}

// Who may submit to one namespace runs and stops jobs of it, and looks at what came
// of that, without ever asking for another.
func TestSecurity_TokenOfANamespaceDoes(t *testing.T) {
	d := serverAt(t, "", kept+"\nacl: {enabled: true}")
	d.start()
	d.firstToken()
	file := filepath.Join(d.dir, "web.json")
	do(t, os.WriteFile(file, []byte(`{"Job": {"ID": "web", "Namespace": "web", "Datacenters": ["dc1"], "TaskGroups": [
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
		{"job run " + file, 6}, // there is no node
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

// Callers that never come to an end, and those that send too much, are put off, and
// others are served meanwhile.
func TestSecurity_SlowAndHugeRequestsAreRefused(t *testing.T) {
	d := serverAt(t, "", kept)
	d.start()
	for range 50 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
		do(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "POST /v1/jobs HTTP/1.1\r\nHost: cede\r\nContent-Length: 100\r\n")
		do(t, err)
	}
	slow, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	do(t, err)
	t.Cleanup(func() { _ = slow.Close() })
	_, err = io.WriteString(slow, "POST /v1/jobs HTTP/1.1\r\nHost: cede\r\n") // and never the rest
	do(t, err)
	_, err = d.client().Jobs().Register(t.Context(), aJob("served"), nil)
	do(t, err)
	resp, err := http.Post(d.url+"/v1/jobs", "application/json", io.LimitReader(endless{}, 64<<20))
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusRequestEntityTooLarge && resp.StatusCode != http.StatusBadRequest {
		t.Errorf("64 MiB: %d", resp.StatusCode)
	}
	header, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/v1/jobs", nil)
	do(t, err)
	header.Header.Set("X-Large", strings.Repeat("x", 1<<20))
	resp, err = http.DefaultClient.Do(header)
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a header of 1 MiB: %d", resp.StatusCode)
		}
	}
	// Header and body have a time; the one that never came to its end is told to go.
	do(t, slow.SetReadDeadline(time.Now().Add(patience)))
	if _, err := io.Copy(io.Discard, slow); os.IsTimeout(err) {
		t.Error("a request whose header never ends is waited for")
	}
	http.DefaultClient.CloseIdleConnections()
	_, _, err = d.client().Jobs().Get(t.Context(), "served", nil)
	do(t, err)
	d.stop()
}

// endless is a body of one letter.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
