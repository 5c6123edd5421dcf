package app_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/cmd/internal/cli/compare"
	"github.com/cede-scheduler/cede/core/agent/driver/exec"
	"github.com/cede-scheduler/cede/core/comparisons"
)

// TestMain also runs the test binary as the processes that an agent and a server start. It
// belongs to an external package because the player of comparisons imports app.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == exec.SupervisorArg {
		os.Exit(exec.Supervise())
	}
	if len(os.Args) == 2 && os.Args[1] == comparisons.Arg {
		os.Exit(compare.PlayMain())
	}
	// A gossip probe that is in flight ends when its timer expires.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}
