package kubernetes

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cede-scheduler/cede/core/kube/apiservertest"
)

// A registry is a container registry with one artifact.
type registry struct {
	*httptest.Server
	mu       sync.Mutex
	manifest []byte
	blobs    map[string][]byte
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{blobs: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// push replaces the artifact by a module.
func (r *registry) push(t *testing.T, code []byte) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(code))
	r.blobs[digest] = code
	var err error
	r.manifest, err = json.Marshal(map[string]any{"layers": []any{
		map[string]any{"digest": digest, "size": len(code), "annotations": map[string]string{"org.opencontainers.image.title": "policy.wasm"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.blobs[strings.TrimPrefix(req.URL.Path, "/v2/policies/blobs/")]
	if req.URL.Path == "/v2/policies/manifests/stable" {
		text = r.manifest
	}
	if text == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(text) // fails only if the client has disconnected
}

// A policy is pulled from a registry and decides. If its tag moves, the new one is
// loaded; if that is invalid, the previous one stays.
func TestKubernetes_PullsPolicyFromRegistry(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	module := func(language string) []byte {
		t.Helper()
		code, err := os.ReadFile("../../../../sdk/abi/testdata/guests/decay-" + language + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	r.push(t, module("c"))
	api := apiservertest.New()
	api.Put(node("n1"))
	w := start(t, api, newClient(), map[string]string{"kubernetes.policy": "oci://" + strings.TrimPrefix(r.URL, "http://") + "/policies:stable"})
	w.ready()
	decides := func(module string) {
		t.Helper()
		if !w.evicts(module) {
			t.Errorf("the %s does not evict", module)
		}
	}
	decides("module")
	r.push(t, []byte("not a module"))
	w.eventually("the error is logged", func() bool { return strings.Contains(w.log.String(), `"msg":"reload failed"`) })
	decides("previous-module")
	r.push(t, module("rust"))
	w.eventually("the new module is loaded", func() bool { return strings.Contains(w.log.String(), `"msg":"policy loaded"`) })
	decides("new-module")
}
