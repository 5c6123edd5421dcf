package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/core/clock"
)

// Commands that wait for one answer of a server show for how long.
func TestCommands_ShowHowLongTheyWait(t *testing.T) {
	const job = "id: j\ngroups: [{name: g, tasks: [{name: t, driver: sim}]}]\n"
	for line, want := range map[string]string{
		"rebalance --plan":                       "planning moves",
		"rebalance --run token":                  "executing the plan",
		"job plan j.yaml":                        "planning j",
		"decision export a -w x.cert":            "repeating the decision",
		"operator snapshot save x":               "x, 0 bytes",
		"operator snapshot restore j.yaml --yes": "j.yaml, 59 bytes",
	} {
		w := clitest.New(map[string]string{"j.yaml": job}, strings.Fields(line)...)
		c := clock.NewVirtual(time.Unix(0, 0))
		w.Clock = c
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			c.AdvanceTo(c.Now().Add(25 * time.Second))
		}))
		w.Variables["CEDE_ADDR"] = server.URL
		runEnv(t, w) // the empty answer is not valid
		server.Close()
		if !strings.HasPrefix(w.Err.String(), want+", 10s\n"+want+", 20s\n") {
			t.Errorf("%s: stderr %s", line, &w.Err)
		}
	}
}
