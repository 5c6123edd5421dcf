package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A registry serves artifacts of one repository.
type registry struct {
	*httptest.Server
	token     string            // required if not empty; issued for user:secret
	manifests map[string][]byte // by tag or digest
	blobs     map[string][]byte
	requests  int
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{manifests: map[string][]byte{}, blobs: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *registry) host() string { return strings.TrimPrefix(r.URL, "http://") }

// push stores an artifact and returns its digest.
func (r *registry) push(t *testing.T, tag string, files map[string]string) string {
	t.Helper()
	var m manifest
	for name, text := range files {
		digest := digestOf([]byte(text))
		r.blobs[digest] = []byte(text)
		m.Layers = append(m.Layers, descriptor{Digest: digest, Size: int64(len(text)), Annotations: map[string]string{title: name}})
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	r.manifests[tag], r.manifests[digestOf(text)] = text, text
	return digestOf(text)
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.requests++
	if req.URL.Path == "/token" {
		user, password, _ := req.BasicAuth()
		if user != "user" || password != "secret" || req.URL.Query().Get("scope") != "repository:team/policies:pull" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"token": %q}`, r.token)
		return
	}
	if r.token != "" && req.Header.Get("Authorization") != "Bearer "+r.token {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry"`, r.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	rest, ok := strings.CutPrefix(req.URL.Path, "/v2/team/policies/")
	kind, name, _ := strings.Cut(rest, "/")
	text := r.manifests[name]
	if kind == "blobs" {
		text = r.blobs[name]
	}
	if !ok || text == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(text)
}

// pull pulls a version of the repository into a folder.
func (r *registry) pull(t *testing.T, c *Client, version, dir string) (string, error) {
	t.Helper()
	ref, err := ParseReference(Scheme + r.host() + "/team/policies" + version)
	if err != nil {
		t.Fatal(err)
	}
	return c.Pull(t.Context(), &ref, dir)
}

func TestPull_StoresModulesAndBundles(t *testing.T) {
	r, c, dir := newRegistry(t), &Client{}, t.TempDir()
	module := r.push(t, "module", map[string]string{"protect.wasm": "code"})
	r.push(t, "bundle", map[string]string{"policy.yaml": "name: x", "x.wasm": "code", "policy.sig": "signature"})
	path, err := r.pull(t, c, "@"+module, dir)
	if err != nil || path != filepath.Join(dir, folder(module), "protect.wasm") {
		t.Fatalf("module %s, %v", path, err)
	}
	bundle, err := r.pull(t, c, ":bundle", dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"policy.yaml": "name: x", "x.wasm": "code", "policy.sig": "signature"} {
		if text, err := os.ReadFile(filepath.Join(bundle, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	// A digest never changes: a stored artifact needs no registry. A tag is read again.
	before := r.requests
	if again, err := r.pull(t, c, "@"+module, dir); err != nil || again != path || r.requests != before {
		t.Errorf("%s, %v, %d requests", again, err, r.requests-before)
	}
	r.push(t, "bundle", map[string]string{"policy.yaml": "name: y", "x.wasm": "other"})
	if moved, err := r.pull(t, c, ":bundle", dir); err != nil || moved == bundle {
		t.Errorf("a tag that moved: %s, %v", moved, err)
	}
}

func TestPull_SendsCredentialsToTheTokenService(t *testing.T) {
	r := newRegistry(t)
	r.token = "t0ken"
	digest := r.push(t, "v1", map[string]string{"p.wasm": "code"})
	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, fmt.Appendf(nil, `{"auths": {%q: {"auth": "dXNlcjpzZWNyZXQ="}}}`, r.host()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pull(t, &Client{Credentials: DockerConfig(config)}, "@"+digest, t.TempDir()); err != nil {
		t.Error(err)
	}
	status := &StatusError{}
	if _, err := r.pull(t, &Client{}, "@"+digest, t.TempDir()); !errors.As(err, &status) || status.Status != http.StatusForbidden {
		t.Errorf("without credentials: %v", err)
	}
}

// The content that a registry returns must have the digest that names it, and stay within its folder.
func TestPull_RejectsOtherContent(t *testing.T) {
	for name, spoil := range map[string]func(r *registry, digest string){
		"another manifest": func(r *registry, digest string) { r.manifests[digest] = []byte(`{"layers":[]}`) },
		"another module": func(r *registry, _ string) {
			for d := range r.blobs {
				r.blobs[d] = []byte("evil")
			}
		},
		"a longer module": func(r *registry, _ string) {
			for d := range r.blobs {
				r.blobs[d] = append(r.blobs[d], 'x')
			}
		},
		"a missing module": func(r *registry, _ string) { clear(r.blobs) },
	} {
		t.Run(name, func(t *testing.T) {
			r, dir := newRegistry(t), t.TempDir()
			digest := r.push(t, "v1", map[string]string{"p.wasm": "code"})
			spoil(r, digest)
			if path, err := r.pull(t, &Client{}, "@"+digest, dir); err == nil {
				t.Errorf("pulled %s", path)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
	for name, files := range map[string]map[string]string{
		"outside of the folder": {"../p.wasm": "code"}, "a hidden file": {".p.wasm": "code"}, "no module": {"readme.md": "text"},
		"two modules": {"a.wasm": "code", "b.wasm": "other"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			digest := r.push(t, "v1", files)
			if path, err := r.pull(t, &Client{}, "@"+digest, t.TempDir()); err == nil {
				t.Errorf("pulled %s", path)
			}
		})
	}
}

func TestParseReference(t *testing.T) {
	digest := digestOf(nil)
	for text, want := range map[string]Reference{
		"oci://ghcr.io/team/policies/protect:v1":       {Registry: "ghcr.io", Repository: "team/policies/protect", Tag: "v1"},
		"oci://registry:5000/protect@" + digest:        {Registry: "registry:5000", Repository: "protect", Digest: digest},
		"oci://[::1]:5000/protect:v1@" + digest:        {Registry: "[::1]:5000", Repository: "protect", Digest: digest},
		"oci://ghcr.io/team/protect":                   {},
		"oci://ghcr.io/Team/protect:v1":                {},
		"oci://ghcr.io/../protect:v1":                  {},
		"oci:///protect:v1":                            {},
		"https://ghcr.io/team/protect:v1":              {},
		"oci://ghcr.io/team/protect@sha256:abc":        {},
		"oci://ghcr.io/team/protect:v 1":               {},
		"oci://user:secret@ghcr.io/team/protect:v1":    {},
		"oci://ghcr.io/team/protect:v1?minRuntime=10m": {},
	} {
		got, err := ParseReference(text)
		if got != want || (err == nil) != (want != Reference{}) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for registry, want := range map[string]string{"ghcr.io": "https://ghcr.io", "127.0.0.1:80": "http://127.0.0.1:80", "localhost": "http://localhost", "10.0.0.1": "https://10.0.0.1"} {
		if got := (&Reference{Registry: registry}).base(); got != want {
			t.Errorf("%s: %s, want %s", registry, got, want)
		}
	}
}
