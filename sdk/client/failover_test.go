package client

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// hung returns the address of a server whose process was stopped: the system accepts
// its connections, but they are not read.
func hung(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// If the first server hangs, a command is delayed only briefly, and a write that must not
// be repeated is sent once, to a server that responds.
func TestClient_HungServerDelaysBriefly(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	alive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			if r.Header.Get("Authorization") != "" {
				t.Error("the probe carries the token")
			}
			w.WriteHeader(http.StatusTooManyRequests) // any response counts
			return
		}
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		mu.Unlock()
		if r.Method == http.MethodGet {
			answer(w, http.StatusOK, []*JobStub{})
			return
		}
		answer(w, http.StatusOK, map[string]any{"EvalID": "e"})
	}))
	defer alive.Close()
	for name, do := range map[string]func(context.Context, *Client) error{
		"GET /v1/jobs":              func(ctx context.Context, c *Client) error { _, _, err := c.Jobs().List(ctx, nil); return err },
		"POST /v1/job/web/evaluate": func(ctx context.Context, c *Client) error { _, err := c.Jobs().Evaluate(ctx, "web", nil); return err },
		"PUT /v1/policy/p/rollback": func(ctx context.Context, c *Client) error { _, err := c.Policies().Rollback(ctx, "p"); return err },
		"POST /v1/policies": func(ctx context.Context, c *Client) error {
			_, err := c.Policies().Load(ctx, &PolicyLoad{Builtin: "p"})
			return err
		},
		"DELETE /v1/job/web": func(ctx context.Context, c *Client) error { _, err := c.Jobs().Stop(ctx, "web", nil); return err },
	} {
		c, err := New(Config{Address: strings.Join([]string{hung(t), hung(t), alive.URL}, ","), Token: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), defaultSilence/2)
		asked = nil
		err = do(ctx, c)
		if err != nil || c.Address() != alive.URL || !slices.Equal(asked, []string{name}) {
			t.Errorf("%s: %v; preferred is %s, requests %q", name, err, c.Address(), asked)
		}
		cancel()
		c.Close()
	}
}

// The first server of the list is preferred while it responds. A single server is not
// probed. If no server responds, the request returns the error.
func TestClient_ProbesOnce(t *testing.T) {
	var looked atomic.Int32
	serve := func() *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/livez" {
				looked.Add(1)
			}
			answer(w, http.StatusOK, []*JobStub{})
		}))
	}
	one, two := serve(), serve()
	defer one.Close()
	defer two.Close()
	for addresses, looks := range map[string]int32{one.URL + "," + two.URL: 1, one.URL: 0} {
		looked.Store(0)
		c, err := New(Config{Address: addresses})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, _, err := c.Jobs().List(t.Context(), nil); err != nil || c.Address() != one.URL {
				t.Errorf("%s responded, %v", c.Address(), err)
			}
		}
		if looked.Load() != looks {
			t.Errorf("%s: %d probes", addresses, looked.Load())
		}
		c.Close()
	}
	nobody, err := New(Config{Address: hung(t) + "," + hung(t), Retries: -1, Silence: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	if _, _, err := nobody.Jobs().List(t.Context(), nil); !IsUnreachable(err) {
		t.Errorf("no server responds: %v", err)
	}
}
