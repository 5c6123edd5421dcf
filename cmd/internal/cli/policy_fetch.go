package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newPolicyFetchCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fetch N[@V]",
		Short: "Write a module that the servers have to a file",
		Long: `Write the WebAssembly module of version V of policy N, as the servers have it, to a
file, which any command takes that takes a policy. Without V it is the active
version, or else the only one that is loaded. Its configuration and its grants are
the version's and not the module's: ` + "`cede policy status N`" + ` has them.

What was written has the digest that the version names. Of a built-in policy and of
an executable there is no module. Takes the role operate or policy.`,
		Example: "  cede policy fetch thrifty -w thrifty.wasm\n  cede policy inspect thrifty.wasm",
		Args:    arguments(1, 1, "one policy, N or N@V"),
	}
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	file := cmd.Flags().StringP("write", "w", "", "write the module to `FILE`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		name, version, versioned := strings.Cut(args[0], "@")
		if name == "" || versioned && version == "" {
			return notPolicy(cmd, args[0])
		}
		if *file == "" {
			return usagef("name it, as in -w "+name+".wasm", "fetch writes a file: -w is missing")
		}
		if err := env.writable(*file); err != nil {
			return err
		}
		api, err := conn.dial()
		if err != nil {
			return err
		}
		m, err := api.Policies().Module(cmd.Context(), name, version)
		if err != nil {
			return ofPolicy(interruptedBy(cmd.Context(), err))
		}
		if err := env.writeModule(*file, m); err != nil || *file == stdin {
			return err
		}
		v := struct {
			File, Name, Version, Digest string
			Size                        int
		}{*file, name, m.Version, m.Digest, len(m.Code)}
		return out.show(document{data: v, names: []string{*file}, page: func(p page) {
			p.printf("%s: %s, %s\n", *file, versionName(name, m.Version), size(int64(len(m.Code))))
		}})
	}
	return cmd
}

// writeModule writes the code of a policy where the user wants it.
func (env *Env) writeModule(name string, m *client.PolicyModule) error {
	return env.write(name, func(w io.Writer) error {
		_, err := w.Write(m.Code)
		return err
	})
}
