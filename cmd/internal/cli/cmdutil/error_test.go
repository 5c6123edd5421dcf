package cmdutil

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

func TestWantsJSON_AllSpellings(t *testing.T) {
	for _, tc := range []struct {
		args     string
		variable string
		want     bool
	}{
		{"sim run -o json x", "", true},
		{"sim run --output json x", "", true},
		{"sim run --output=json x", "", true},
		{"sim run -ojson x", "", true},
		{"sim run -o=json x", "", true},
		{"sim run x", "json", true},
		{"sim run x -o yaml", "json", false},
		{"sim run x -- -o json", "", false},
		{"sim run -o", "", false},
		{"sim run x", "", false},
	} {
		if got := WantsJSON(strings.Fields(tc.args), func(string) string { return tc.variable }); got != tc.want {
			t.Errorf("%q with %q: %v", tc.args, tc.variable, got)
		}
	}
}

func TestMoreSevere_OrderOfExitCodes(t *testing.T) {
	order := []Exit{ExitInterrupted, ExitUsage, ExitPolicy, ExitError, ExitCheck, ExitOK}
	for i, a := range order {
		for _, b := range order[i:] {
			if MoreSevere(a, b) != a || MoreSevere(b, a) != a {
				t.Errorf("MoreSevere(%d, %d) is %d, and swapped %d", a, b, MoreSevere(a, b), MoreSevere(b, a))
			}
		}
	}
}

// The server's parameter stale=true is --stale on the command line.
func TestServerError_NamesFlags(t *testing.T) {
	e := ServerError(&client.Error{Code: client.CodeNoLeader, Message: "no", Hint: "ask another server; stale=true reads the local state"})
	if want := "ask another server; --stale reads the local state"; e.Hint != want || e.Exit != ExitUnreachable {
		t.Errorf("exit %d, %q", e.Exit, e.Hint)
	}
}
