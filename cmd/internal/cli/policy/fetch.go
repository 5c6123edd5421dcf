package policy

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
)

func newPolicyFetchCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fetch N[@V]",
		Short: "Download the module of a policy",
		Long: `Download the module of policy N from the servers into a file: of its active version, or
of version V.

The manifest and the signature are not included.`,
		Example: "  cede policy fetch thrifty -w thrifty.wasm\n  cede policy inspect thrifty.wasm",
		Args:    cmdutil.PositionalArgs(1, 1, "one policy, N or N@V"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	file := cmd.Flags().StringP("write", "w", "", "write the module to `FILE`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		name, version, versioned := strings.Cut(args[0], "@")
		if name == "" || versioned && version == "" {
			return notPolicy(cmd, args[0])
		}
		if *file == "" {
			return cmdutil.Usagef("add -w "+name+".wasm", "-w is required")
		}
		if err := env.CheckWritable(*file); err != nil {
			return err
		}
		api, err := conn.Dial()
		if err != nil {
			return err
		}
		m, err := api.Policies().Module(cmd.Context(), name, version)
		if err != nil {
			return ofPolicy(cmdutil.InterruptError(cmd.Context(), err))
		}
		if err := env.WriteModule(*file, m); err != nil || *file == cmdutil.Stdin {
			return err
		}
		v := struct {
			File, Name, Version, Digest string
			Size                        int
		}{*file, name, m.Version, m.Digest, len(m.Code)}
		return out.Show(cmdutil.Document{Data: v, Names: []string{*file}, Page: func(p cmdutil.Page) {
			p.Printf("%s: %s, %s\n", *file, policyflags.VersionName(name, m.Version), cmdutil.FormatBytes(int64(len(m.Code))))
		}})
	}
	return cmd
}
