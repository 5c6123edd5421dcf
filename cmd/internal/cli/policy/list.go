package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newPolicyListCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the policies on the servers",
		Long: `List the policies on the servers: the active version of each name, the version that a
rollback returns to, and the version of the shadow run. Versions are shown by their
first digits. A job names its policy; otherwise the scheduler settings apply.`,
		Example: `  cede policy list
  cede policy list -o wide`,
		Args: cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		list, _, err := c.Client.Policies().List(ctx, nil)
		if err != nil {
			return cmdutil.Document{}, ofPolicy(err)
		}
		return listedPolicies(list), nil
	})
}

func listedPolicies(list []*client.PolicyStub) cmdutil.Document {
	d := cmdutil.Document{Data: list}
	for _, p := range list {
		d.Names = append(d.Names, p.Name)
	}
	d.Page = func(p cmdutil.Page) {
		shown := model.ShortVersion
		if p.Wide {
			shown = func(id string) string { return id }
		}
		t := &term.Table{NoHeaders: p.NoHeaders, Columns: []term.Column{
			{Title: "POLICY"}, {Title: "ACTIVE"}, {Title: "PREVIOUS"}, {Title: "SHADOW"}, {Title: "LOADED", Right: true}, {Title: "REMARKS"},
		}}
		for _, s := range list {
			active := shown(s.Active)
			if active == "" && s.Builtin {
				active = "built in"
			}
			t.Row(s.Name, active, shown(s.Previous), shown(s.Shadow), fmt.Sprint(s.Versions), strings.Join(remarks(s), "; "))
		}
		_ = t.Write(p.W, p.Style) // p.W stores the error
	}
	return d
}

// remarks returns the unusual conditions of a policy.
func remarks(s *client.PolicyStub) []string {
	var list []string
	if s.Until != 0 {
		list = append(list, "on trial until "+when(s.Until))
	}
	switch len(s.Tripped) {
	case 0:
	case 1:
		list = append(list, "a version is out of service")
	default:
		list = append(list, fmt.Sprintf("%d versions are out of service", len(s.Tripped)))
	}
	return list
}
