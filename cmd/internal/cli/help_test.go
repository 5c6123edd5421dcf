package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// TestHelp_EveryCommandIsDescribed checks Short, Long and Example of all commands.
func TestHelp_EveryCommandIsDescribed(t *testing.T) {
	if soak.Race && !soak.Full() {
		t.Skip("help starts no goroutines: set CEDE_SOAK=1")
	}
	clitest.CheckHelp(t, func() *cobra.Command { return newRootCmd(clitest.New(nil).Env) })
}
