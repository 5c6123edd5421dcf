package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// TestJobRun_ReportsWhyPendingOnce checks the warning while an evaluation stays pending.
func TestJobRun_ReportsWhyPendingOnce(t *testing.T) {
	for name, c := range map[string]struct{ broker, want string }{
		"paused":     {`{"Enabled": true, "Paused": true}`, "the broker is paused: nothing is placed or stopped until `cede operator broker resume`; the command waits for at most 5m0s, and with --detach not at all"},
		"no workers": {`{"Enabled": true, "Workers": {"Wanted": 0}}`, "the leader has no workers (server.workers is 0)"},
		"no leader":  {"", "no leader: nothing is placed until one is elected"},
		"at work":    {`{"Enabled": true, "Workers": {"Wanted": 2, "Running": 2}}`, ""},
		"forbidden":  {`{"Code": "forbidden"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Nomad-Index", "40")
				w.Header().Set("X-Nomad-KnownLeader", map[bool]string{true: "true", false: "false"}[c.broker != ""])
				answer := `{"EvalID": "e1", "Index": 40}`
				switch r.URL.Path {
				case "/v1/evaluation/e1":
					if asked++; asked <= 4 {
						answer = `{"ID": "e1", "JobID": "web", "Status": "pending"}`
					} else {
						answer = `{"ID": "e1", "JobID": "web", "Status": "complete"}`
					}
				case "/v1/evaluation/e1/allocations":
					answer = `[]`
				case "/v1/operator/broker/status":
					if answer = c.broker; strings.Contains(answer, "forbidden") {
						w.WriteHeader(http.StatusForbidden)
					}
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer server.Close()
			w := clitest.New(map[string]string{"web.yaml": "id: web\ngroups: [{name: g, tasks: [{name: t, driver: sim}]}]\n"}, "job", "run", "web.yaml")
			w.Variables["CEDE_ADDR"] = server.URL
			if code := cmdutil.Run(t.Context(), w.Env, newRootCmd); code != cmdutil.ExitOK {
				t.Fatalf("exit %d: %s", code, w.Err.String())
			}
			said := strings.ReplaceAll(w.Err.String(), "warning: server "+server.URL+" has no leader: the result may be outdated\n", "")
			if c.want == "" && said != "" || strings.Count(said, "warning: ") > 1 || !strings.Contains(said, c.want) {
				t.Errorf("stderr is %q, want %q", said, c.want)
			}
		})
	}
}

// A command reports a paused broker at once: neither does it wait in silence, nor does it
// succeed in silence if it does not wait.
func TestCommands_ReportPausedBrokerAtOnce(t *testing.T) {
	for line, waits := range map[string]bool{
		"job run web.yaml": true, "job stop web": true, "job run web.yaml --detach": false, "job stop web --detach": false,
		"alloc stop a1": false, "node drain n1": false, "binding apply b.yaml": false, "binding delete b": false,
	} {
		t.Run(line, func(t *testing.T) {
			server, polls := pausedServer(t)
			w := clitest.New(map[string]string{
				"web.yaml": "id: web\ngroups: [{name: g, tasks: [{name: t, driver: sim}]}]\n", "b.yaml": "id: b\nreplicas: 1\nresources: {cpu: 1}\n",
			}, append(strings.Fields(line), "--addr", server)...)
			warned := &warningWatch{Buffer: &w.Err, polls: polls, found: make(chan int64, 1)}
			w.Stderr = warned
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			code := make(chan int, 1)
			go func() { code <- int(cmdutil.Run(ctx, w.Env, newRootCmd)) }()
			after := <-warned.found
			if waits {
				cancel() // it is still waiting
			}
			if got := <-code; waits != (got == int(cmdutil.ExitInterrupted)) {
				t.Errorf("exit %d: %s", got, w.Err.String())
			}
			if after > 1 {
				t.Errorf("the warning came after %d polls", after)
			}
		})
	}
}

// warningWatch sends the number of polls so far when the warning about a paused broker
// is written.
type warningWatch struct {
	*bytes.Buffer
	polls *atomic.Int64
	found chan int64
}

func (w *warningWatch) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("the broker is paused: nothing is placed or stopped until `cede operator broker resume`")) {
		w.found <- w.polls.Load()
	}
	return w.Buffer.Write(p)
}

// pausedServer starts a server that accepts every write and leaves evaluations pending. It
// returns its URL and the number of queries of the evaluation.
func pausedServer(t *testing.T) (url string, polls *atomic.Int64) {
	polls = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Nomad-Index", "40")
		w.Header().Set("X-Nomad-KnownLeader", "true")
		answer := `{"EvalID": "e1", "Index": 40, "ID": "x"}`
		switch r.URL.Path {
		case "/v1/operator/broker/status":
			answer = `{"Enabled": true, "Paused": true}`
		case "/v1/evaluation/e1":
			answer = `{"ID": "e1", "JobID": "web", "Status": "pending"}`
			if polls.Add(1) > 1 {
				<-r.Context().Done() // a blocking query without changes
			}
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, polls
}
