package operator

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newOperatorAuditCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List changes by operators, newest first",
		Long: `List changes of policies, scheduler settings, tokens, namespaces, priority classes and
disruption budgets, and restores of snapshots, with their actor, address and time.

The cluster stores the newest 4,096 changes. A restore of a snapshot retains them. Changes
that servers make without a request have the actor trial or server.`,
		Example: `  cede operator audit --since 24h
  cede operator audit --action policy --object default
  cede operator audit --actor ci -o json`,
		Args: cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	var filter client.AuditFilter
	f := cmd.Flags()
	f.StringVar(&filter.Action, "action", "", "only `ACTION`, such as policy.activate, or a kind, such as policy")
	f.StringVar(&filter.Actor, "actor", "", "only changes by `ACTOR`: accessor or name of a token, trial or server")
	f.StringVar(&filter.Object, "object", "", "only changes of the object `NAME`")
	f.StringVar(&filter.Since, "since", "", "only changes since `TIME`: RFC 3339, or a duration such as 24h")
	f.StringVar(&filter.Until, "until", "", "only changes before `TIME`")
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		api, err := c.Dial()
		if err != nil {
			return cmdutil.Document{}, err
		}
		list, err := cmdutil.ListAll(ctx, c.QueryOptions(), func(ctx context.Context, q *client.QueryOptions) ([]*client.AuditRecord, *client.QueryMeta, error) {
			return api.Operator().Audit(ctx, filter, q)
		})
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: list, Names: cmdutil.NamesOf(list, func(r *client.AuditRecord) string { return fmt.Sprint(r.Index) }), Page: func(p cmdutil.Page) {
			showAudit(p, list)
		}}, nil
	})
}

func showAudit(p cmdutil.Page, list []*client.AuditRecord) {
	shown := list
	if len(shown) > cmdutil.MaxList && !p.Wide {
		shown = shown[:cmdutil.MaxList]
	}
	t := cmdutil.NewTable("TIME", "ACTION", "OBJECT", "ACTOR", "ADDRESS", "DETAIL")
	for _, r := range shown {
		object := r.Object
		if r.Action == "token.create" || r.Action == "token.delete" {
			object = p.ID(object)
		}
		address := cmp.Or(r.Address, "-")
		if r.Via != "" && p.Wide {
			address += " via " + r.Via
		}
		t.Row(cmdutil.FormatTime(r.Time), r.Action, cmp.Or(object, "-"), auditActor(p, r), address, cmp.Or(r.Detail, "-"))
	}
	p.List(t, "changes", "a filter may exclude them")
	p.Omitted(len(list), len(shown))
}

// auditActor returns the name of the token with its accessor, as far as the record has them.
func auditActor(p cmdutil.Page, r *client.AuditRecord) string {
	switch {
	case r.Actor == "":
		return "no token"
	case r.ActorName == "":
		return r.Actor
	}
	return r.ActorName + " (" + p.ID(r.Actor) + ")"
}
