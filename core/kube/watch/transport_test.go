package watch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A missing kubeconfig is reported with what to do. The text of client-go names a variable
// that has no effect here.
func TestLoadConfig_WithoutClusterNamesTheRemedy(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("garbage:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"": "use --kubeconfig or $KUBECONFIG", empty: "empty names no cluster"} {
		if _, err := LoadConfig(file, ""); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}

// Each loss of the connection is logged once, and a request that its caller cancelled is not
// a loss.
func TestConnection_LogsEachChangeOnce(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	var err error
	l := &connection{log: slog.New(slog.NewTextHandler(&text, nil))}
	transport := l.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	send := func(ctx context.Context, fails error) {
		err = fails
		r, problem := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example:6443/api/v1/pods?watch=1", http.NoBody)
		if problem != nil {
			t.Fatal(problem)
		}
		resp, got := transport.RoundTrip(r)
		if !errors.Is(got, fails) {
			t.Errorf("%v, want %v", got, fails)
		}
		if got == nil {
			_ = resp.Body.Close() // empty
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	refused := errors.New("connection refused")
	send(t.Context(), nil)
	send(cancelled, context.Canceled)
	if text.Len() > 0 {
		t.Errorf("logged without a loss: %s", &text)
	}
	for range 2 {
		for _, err := range []error{refused, refused, nil, nil} {
			send(t.Context(), err)
			if l.reachable() != (err == nil) {
				t.Errorf("reachable is %v after error %v", l.reachable(), err)
			}
		}
	}
	if got := text.String(); strings.Count(got, "unreachable\" url=https://api.example:6443 err=\"connection refused\"") != 2 || strings.Count(got, "reachable again") != 2 || strings.Count(got, "\n") != 4 {
		t.Errorf("want two losses and two recoveries:\n%s", got)
	}
}
