package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/config"
)

// asks returns the status code of the metrics listener for a request with this token.
func asks(t *testing.T, c *http.Client, url, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	c.CloseIdleConnections()
	return resp.StatusCode
}

const scraper = "a-token-of-those-who-scrape"

// Off loopback, metrics require the same authorization as the API. A test listens on
// loopback only, so the listener is created as if it were bound to all interfaces.
func TestMetricsListener_RequiresTokenOffLoopback(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	ca := newAuthority(t, path("ca.pem"))
	ca.sign("first", path("cert.pem"), path("key.pem"))
	tokenFile := path("token")
	write := func(token string) {
		if err := os.WriteFile(tokenFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(scraper)
	file, _ := durable(t, fmt.Sprintf("tls: {cert: %s, key: %s, ca: %s}\ntelemetry: {token: \"file:%s\"}\n", path("cert.pem"), path("key.pem"), path("ca.pem"), tokenFile))
	c := load(t, config.Sources{Files: []string{file}, Environ: asSelf})
	if !c.MetricsLocal() {
		t.Fatal("the listener of a test is not on loopback")
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(path("ca.pem"))
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	secure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	plain := &http.Client{Transport: &http.Transport{}}

	s := start(t, c)
	local := "http://" + s.MetricsAddress()
	for _, where := range []string{"/metrics", "/debug/pprof/cmdline"} {
		if got := [3]int{asks(t, plain, local+where, ""), asks(t, plain, local+where, "wrong"), asks(t, plain, local+where, scraper)}; got != [3]int{401, 401, 200} {
			t.Errorf("%s without a token, with a wrong one, with the right one: %v", where, got)
		}
	}
	write(scraper + "-of-today")
	if changed, err := s.Reload(t.Context()); err != nil || strings.Join(changed, " ") != "telemetry.token" {
		t.Errorf("reload with a new token: %v, %v", changed, err)
	}
	if got := [2]int{asks(t, plain, local+"/metrics", scraper), asks(t, plain, local+"/metrics", scraper+"-of-today")}; got != [2]int{401, 200} {
		t.Errorf("with the old and the new token: %v", got)
	}

	far := listening(t, s, func(c *config.Config) { c.Listen.Metrics = "0.0.0.0:0"; c.Telemetry.Token = scraper })
	for _, where := range []string{"/metrics", "/debug/pprof/cmdline"} {
		got := [3]int{asks(t, plain, "http://"+far+where, scraper), asks(t, secure, "https://"+far+where, ""), asks(t, secure, "https://"+far+where, scraper)}
		if got != [3]int{400, 401, 200} { // 400: net/http answers plain text requests on a TLS port
			t.Errorf("%s in plain text, without a token, with one: %v", where, got)
		}
	}
	open := listening(t, s, func(c *config.Config) { c.Listen.Metrics = "0.0.0.0:0"; c.Telemetry.Token, c.Telemetry.Open = "", true })
	if got := [2]int{asks(t, secure, "https://"+open+"/metrics", ""), asks(t, secure, "https://"+open+"/debug/pprof/cmdline", "")}; got != [2]int{200, 403} {
		t.Errorf("with telemetry.open, metrics and profiles return %v", got)
	}
}

// listening serves the metrics of a process under another configuration and returns
// the URL. A listener for all interfaces is bound to loopback nevertheless.
func listening(t *testing.T, s *started, change func(*config.Config)) string {
	t.Helper()
	c := s.config.Config
	change(&c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, guard := s.guarded(l, &c)
	srv := metricsServer(s.metrics.handler(guard, true))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(m) // until it is shut down
	}()
	t.Cleanup(func() {
		_ = srv.Shutdown(context.Background())
		<-done
	})
	return l.Addr().String()
}
