package benchcli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func newFillCmd(env *cmdutil.Env) *cobra.Command {
	c := bench.FillConfig{}
	cmd := &cobra.Command{
		Use:   "c2m",
		Short: "Place two million instances on 6,100 nodes",
		Long: `Place two million instances on 6,100 nodes, with every placement written to the log on
disk. The time is measured from the first job that is submitted to the last instance
that is placed. With --start the nodes also start all instances and report that, which
is measured separately.`,
		Example: "  cede-bench c2m\n  cede-bench c2m --nodes 610 --allocs 200000 --start",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	b := benchFlags(cmd, env, 6_100)
	f := cmd.Flags()
	f.IntVar(&c.Allocs, "allocs", 2_000_000, "place `N` instances")
	f.IntVar(&c.Each, "each", 1000, "`N` instances per job")
	f.BoolVar(&c.Start, "start", false, "also measure starting all instances")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := b.check("allocs", c.Allocs, "each", c.Each); err != nil {
			return err
		}
		c.Nodes, c.Seed = b.nodes, b.seed
		var r *bench.FillResult
		err := b.on(cmd.Context(), func(*bench.Options) {}, func(t *bench.Target) (err error) {
			r, err = bench.Fill(cmd.Context(), t, c)
			return err
		})
		if err != nil {
			return err
		}
		return b.out.Show(cmdutil.Document{Data: r, Names: []string{"c2m"}, Page: func(p cmdutil.Page) { fillPage(p, r) }})
	}
	return cmd
}

func fillPage(p cmdutil.Page, r *bench.FillResult) {
	facts := []string{
		"nodes", cmdutil.Thousands(r.Nodes), "jobs", cmdutil.Thousands(r.Jobs), "instances", cmdutil.Thousands(r.Allocs), "placed within", seconds(r.Seconds),
		"instances a second", cmdutil.Thousands(int(r.AllocsPerSecond)), "log entries", cmdutil.Thousands(int(r.Entries)),
		"planned in vain", conflictText(r.Conflicts),
	}
	if r.LogBytes > 0 {
		facts = append(facts, "log", cmdutil.FormatBytes(r.LogBytes), "log, an instance", fmt.Sprintf("%.0f bytes", r.LogBytesPerAlloc))
	}
	if r.StartSeconds > 0 {
		facts = append(facts, "started and reported within", seconds(r.StartSeconds))
	}
	if r.MemoryBytes > 0 {
		facts = append(facts, "memory at most", cmdutil.FormatBytes(r.MemoryBytes))
	}
	p.Properties(facts...)
}
