package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
)

// TestHelp_EveryCommandIsDescribed checks Short, Long and Example of all commands.
func TestHelp_EveryCommandIsDescribed(t *testing.T) {
	clitest.CheckHelp(t, func() *cobra.Command { return newRootCmd(clitest.New(nil).Env) })
}
