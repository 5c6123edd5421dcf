package cli

import "github.com/spf13/cobra"

func newSimGenerateCmd(env *Env) *cobra.Command {
	return &cobra.Command{Use: "generate SPEC -w OUT"}
}
