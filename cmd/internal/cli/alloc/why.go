package alloc

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// whyView is the JSON of `cede alloc why --what-if`.
type whyView struct {
	Decisions []*client.Decision
	WhatIf    *client.WhatIf // about the newest decision that evicted the allocation
}

func newAllocWhyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Explain why an allocation was evicted, or evicted others",
		Long: `Explain the decisions in which an allocation was evicted or was placed by evictions:
which job needed the capacity, which options were compared, and what the policy and
the rules of cede decided about each candidate. The newest decision comes first.

The reasons are those recorded with the decision, and nothing is evaluated again. They
are available on every server as long as its history reaches back. After the allocation
was garbage-collected, its full ID is required.

With --what-if, the server computes the state of the newest eviction from its log, makes
the decision again up to 64 times, and reports the smallest changes that would have spared
the allocation: a higher priority of its job, a later time, or a smaller request of the
job that was placed; and the allocation that would have been next. Nothing else changes in
these states: a later decision finds the same allocations, only older. It fails if the log
no longer reaches back, or if the policy that decided is no longer loaded.

A decision that was only observed has evicted nothing, and is listed as well. --what-if
refers to evictions.

Verdicts: evicted; would be evicted (observed); unneeded (the policy listed it after the
victims that sufficed);
reprieved (the policy selected it, and the group fits without it); spared (the policy
did not select it); shielded (a strict disruption budget or its all-or-none job protects it).`,
		Example: "  cede alloc why 9d21\n  cede alloc why 9d21 --what-if\n  cede alloc why 9d21 -o json",
		Args:    cmdutil.PositionalArgs(1, 1, "one allocation"),
	}
	whatIf := cmd.Flags().Bool("what-if", false, "also report the smallest changes that would have spared the allocation")
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		api, err := c.Dial()
		if err != nil {
			return cmdutil.Document{}, err
		}
		list, _, err := api.Allocations().Decisions(ctx, args[0], c.QueryOptions())
		if err != nil {
			return cmdutil.Document{}, cmdutil.ReplaceNotFound(cmdutil.InterruptError(ctx, err), "allocation", args[0], "`cede alloc list --all` lists them")
		}
		view := whyView{Decisions: list}
		if *whatIf {
			if view.WhatIf, _, err = api.Allocations().WhatIf(ctx, args[0], c.QueryOptions()); err != nil {
				return cmdutil.Document{}, cmdutil.InterruptError(ctx, err)
			}
		}
		names := cmdutil.NamesOf(list, func(d *client.Decision) string { return cmp.Or(d.AllocID, d.EvalID) })
		doc := cmdutil.Document{Data: list, Names: names, Page: func(p cmdutil.Page) {
			if len(list) == 0 {
				p.Printf("No recorded decision evicted this allocation, or others for it\n")
			}
			for i, d := range list {
				if i > 0 {
					p.Printf("\n")
				}
				apiview.ExplainDecision(p, env, d)
			}
			if view.WhatIf != nil {
				p.Printf("\n")
				apiview.ExplainWhatIf(p, view.WhatIf)
			}
		}}
		if *whatIf {
			doc.Data = view
		}
		return doc, nil
	})
}
