package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// TestJobRun_ReportsWhyPendingOnce checks the warning while an evaluation stays pending.
func TestJobRun_ReportsWhyPendingOnce(t *testing.T) {
	for name, c := range map[string]struct{ broker, want string }{
		"paused":     {`{"Enabled": true, "Paused": true}`, "the broker is paused: nothing is placed until `cede operator broker resume`"},
		"no workers": {`{"Enabled": true, "Workers": {"Wanted": 0}}`, "the leader has no workers (server.workers is 0)"},
		"held":       {`{"Enabled": true, "Workers": {"Wanted": 2, "Held": ["a policy is not ready"]}}`, "are on hold: a policy is not ready"},
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
