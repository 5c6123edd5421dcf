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

// Amounts have the unit that job files use.
func TestNodeRisk_NamesUnits(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]string{"cpu": "1,101 millicores of cpu", "memory": "1,101 MiB of memory", "gpu": "1,101 units of gpu"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"NodeID": "n1", "Resource": "`+resource+`", "Amount": 1101, "Levels": [{"From": 21}]}`)
		}))
		w := clitest.New(nil, "node", "risk", "n1")
		w.Variables["CEDE_ADDR"] = server.URL
		if code := cmdutil.Run(t.Context(), w.Env, newRootCmd); code != cmdutil.ExitOK || !strings.Contains(w.Out.String(), want) {
			t.Errorf("exit %d, %q, want %q", code, w.Out.String(), want)
		}
		server.Close()
	}
}
