package web

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func serve(t *testing.T, method, target string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestHandler_ServesPagesAndFiles(t *testing.T) {
	for target, kind := range map[string]string{
		"/ui/": "text/html", "/ui/nodes/n1": "text/html", "/ui/jobs/default/a%2Fb": "text/html", "/ui/console.js": "text/javascript",
		"/ui/console.css": "text/css", "/ui/icon.svg": "image/svg+xml",
	} {
		res := serve(t, http.MethodGet, target, nil)
		if res.Code != http.StatusOK || !strings.HasPrefix(res.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: status %d, type %s, want %s", target, res.Code, res.Header().Get("Content-Type"), kind)
		}
		if csp := res.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", target, csp)
		}
		again := serve(t, http.MethodGet, target, http.Header{"If-None-Match": {res.Header().Get("Etag")}})
		if again.Code != http.StatusNotModified {
			t.Errorf("%s with its tag: status %d", target, again.Code)
		}
	}
}

func TestHandler_RejectsWrites(t *testing.T) {
	if res := serve(t, http.MethodPost, "/ui/", nil); res.Code != http.StatusMethodNotAllowed {
		t.Errorf("status %d", res.Code)
	}
}

// The page loads nothing from other hosts, and has no code or style of its own, which the
// policy would reject.
func TestAssets_ReferToTheirServerAlone(t *testing.T) {
	page := string(load()["index.html"].content)
	for _, bad := range []string{"<style", "style=", "onclick", "http://", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("index.html contains %q", bad)
		}
	}
	for name, a := range load() {
		for _, bad := range []string{"eval(", "new Function", "@import", "url(http"} {
			if strings.Contains(string(a.content), bad) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
	}
}
