package policy

import (
	"bufio"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// The status names the sandbox, and warns of a process without one, also as a part.
func TestPolicyStatus_ShowsIsolation(t *testing.T) {
	const warning = " (none: a process can read all files of the server's user, because the kernel has no Landlock)"
	for isolation, want := range map[string]string{
		"":                             "",
		"WebAssembly":                  "WebAssembly",
		"Landlock (ABI 6) and seccomp": "Landlock (ABI 6) and seccomp",
		"none":                         "none" + warning,
		"WebAssembly, none":            "WebAssembly, none" + warning,
	} {
		var text strings.Builder
		out := bufio.NewWriter(&text)
		policyStatus{PolicyStatus: &client.PolicyStatus{Here: &client.PolicyHere{Isolation: isolation}}}.page(cmdutil.Page{W: out})
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
		got := ""
		for line := range strings.Lines(text.String()) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "isolation"); ok {
				got = strings.TrimSpace(value)
			}
		}
		if got != want {
			t.Errorf("isolation %q is shown as %q:\n%s", isolation, got, text.String())
		}
	}
}
