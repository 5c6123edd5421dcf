package rest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Off loopback clients use names that the server does not have in its configuration,
// so only the origin is checked.
func TestBrowserGuard_ChecksHostsOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, test := range []struct {
		listener, host, origin string
		want                   int
	}{
		{"127.0.0.1", "evil.example", "", http.StatusForbidden},
		{"::1", "evil.example:4646", "", http.StatusForbidden},
		{"::1", "", "", http.StatusForbidden},
		{"127.0.0.1", "127.0.0.2:4646", "", http.StatusOK},
		{"127.0.0.1", "localhost.", "", http.StatusOK},
		{"127.0.0.1", "cede.example:443", "", http.StatusOK},
		{"0.0.0.0", "any.example", "", http.StatusOK},
		{"192.0.2.1", "any.example", "", http.StatusOK},
		{"192.0.2.1", "any.example", "http://evil.example", http.StatusForbidden},
		{"192.0.2.1", "any.example", "http://any.example", http.StatusOK},
	} {
		g := NewBrowserGuard(&net.TCPAddr{IP: net.ParseIP(test.listener), Port: 4646}, "", "cede.example:4646")
		r := httptest.NewRequest(http.MethodPut, "/v1/jobs", nil)
		r.Host = test.host
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		w := httptest.NewRecorder()
		g.Protect(ok).ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%+v: status %d", test, w.Code)
		}
	}
}
