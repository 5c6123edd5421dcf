package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newPolicyActivateCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "activate N@V",
		Short: "Activate a version of a policy",
		Long: `Activate version V under the name N, at the same moment on every server. Evaluations that
have started finish with the version that they started with. The version that was
active before is retained for cede policy rollback N.

With --for the activation is a trial: the servers roll back when the time has passed,
unless cede policy activate N@V is repeated without --for.

A version that was disabled after repeated failures is refused; --reset permits it.`,
		Example: `  cede policy activate thrifty@4f2a
  cede policy activate thrifty@4f2a --for 10m`,
		Args: cmdutil.PositionalArgs(1, 1, "one version of a policy, N@V"),
	}
	trial := cmd.Flags().Duration("for", 0, "roll back after a `DURATION` such as 10m, unless the version is activated again")
	reset := cmd.Flags().Bool("reset", false, "activate the version even if it was disabled after failures")
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		name, version, err := namedVersion(cmd, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		if *trial < 0 || cmd.Flags().Changed("for") && *trial == 0 {
			return cmdutil.Document{}, cmdutil.Usagef("use a duration such as 10m", "--for must be positive, not %v", *trial)
		}
		if *reset {
			if _, err := c.Client.Policies().Reset(ctx, name, version); err != nil {
				return cmdutil.Document{}, ofPolicy(err)
			}
		}
		st, err := activate(ctx, c.Client, name, version, *trial)
		if err != nil {
			return cmdutil.Document{}, ofPolicy(err)
		}
		return changed(st, st.Active, activated(st)), nil
	})
}

func activate(ctx context.Context, c *client.Client, name, version string, trial time.Duration) (*client.PolicyStatus, error) {
	if trial > 0 {
		return c.Policies().Try(ctx, name, version, trial)
	}
	return c.Policies().Activate(ctx, name, version)
}

func activated(st *client.PolicyStatus) string {
	now := policyflags.VersionName(st.Name, st.Active)
	if st.Until != 0 {
		return fmt.Sprintf("%s is active until %s; to keep it, run before then: cede policy activate %s", now, when(st.Until), now)
	}
	if st.Previous == "" {
		return now + " is active" + inPlaceOfBuiltin(st)
	}
	return fmt.Sprintf("%s is active; cede policy rollback %s returns to %s", now, st.Name, model.ShortVersion(st.Previous))
}

// inPlaceOfBuiltin returns the end of a sentence about an active version that decides in
// place of the built-in policy of its name, which no rollback reaches. Otherwise it returns "".
func inPlaceOfBuiltin(st *client.PolicyStatus) string {
	if !st.Builtin || st.Previous != "" {
		return ""
	}
	if m, _, ok := builtin.Module(st.Name); ok && slices.ContainsFunc(st.Loaded, func(v *client.PolicyVersion) bool {
		return v.ID == st.Active && v.Digest == m.Digest() && len(v.Config) <= len("{}")
	}) {
		return ""
	}
	return fmt.Sprintf(" in place of the built-in policy; cede policy load %s --activate returns to that one", st.Name)
}
