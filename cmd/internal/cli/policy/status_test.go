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
	const warning = "(none: a process can read all files of the server's user, because the kernel has no Landlock)"
	for isolation, want := range map[string]string{
		"":                             "",
		"WebAssembly":                  "isolation   WebAssembly",
		"Landlock (ABI 6) and seccomp": "isolation   Landlock (ABI 6) and seccomp",
		"none":                         "isolation   none " + warning,
		"WebAssembly, none":            "isolation   WebAssembly, none " + warning,
	} {
		var text strings.Builder
		out := bufio.NewWriter(&text)
		policyStatus{&client.PolicyStatus{Name: "p", Here: &client.PolicyHere{Isolation: isolation}}}.page(cmdutil.Page{W: out})
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := text.String(); strings.Contains(got, "isolation") != (want != "") || !strings.Contains(got, want+"\n") {
			t.Errorf("%q: %s", isolation, got)
		}
	}
}
