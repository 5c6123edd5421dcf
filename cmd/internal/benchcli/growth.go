package benchcli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func newGrowthCmd(env *cmdutil.Env) *cobra.Command {
	c := bench.GrowthConfig{}
	cmd := &cobra.Command{
		Use:   "growth",
		Short: "Measure how cost grows with the cluster",
		Long: `Measure how cost grows with nodes and instances. For each number of nodes, servers are
started, each in its own process, and filled step by step. At each step, jobs are placed
one at a time, nodes send only heartbeats, and a snapshot is saved and restored.

INST/S is the rate at which the instances of the step were placed, and CPU the processor
time of the servers per instance. PLACED is the time from the submission of a job to the
placement of its single instance. MEMORY is the resident set of the largest server, and
IDLE the number of processors that heartbeats occupy.`,
		Example: "  cede-bench growth --nodes 100,1000 --allocs 1000,10000\n  cede-bench growth --servers 3 -o json",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	b := &bencher{env: env, out: cmdutil.OutputFlags(cmd, env), conn: &cmdutil.Connection{Env: env}}
	f := cmd.Flags()
	f.IntSliceVar(&c.Nodes, "nodes", []int{1000, 2000, 5000, 10_000}, "simulate `N,N` nodes, one size after the other")
	f.IntSliceVar(&c.Allocs, "allocs", []int{10_000, 100_000, 1_000_000}, "measure with `N,N` instances, in ascending order")
	f.IntVar(&c.Each, "each", 1000, "`N` instances per job")
	f.Uint64Var(&c.Seed, "seed", 1, "`N` is the seed of the sizes of nodes and jobs")
	f.IntVar(&b.servers, "servers", 1, "start `N` servers")
	f.IntVar(&b.workers, "workers", 0, "process `N` evaluations at a time on each server (default: half the processors)")
	f.StringVar(&b.dir, "data-dir", "", "create the temporary folder of the servers in `DIR`, on the disk to measure (default: that of the system)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b.nodes = slices.Min(append([]int{1}, c.Nodes...))
		if err := b.check("each", c.Each, "servers", b.servers); err != nil {
			return err
		}
		if err := growthSizes(&c); err != nil {
			return err
		}
		points, err := b.growth(cmd.Context(), c)
		if err != nil {
			return err
		}
		return b.out.Show(cmdutil.Document{Data: points, Names: []string{"growth"}, Page: func(p cmdutil.Page) { growthPage(p, points) }})
	}
	return cmd
}

// growthSizes validates the sizes.
func growthSizes(c *bench.GrowthConfig) error {
	if len(c.Nodes) == 0 || len(c.Allocs) == 0 {
		return cmdutil.Usagef("use sizes such as 100,1000", "--nodes and --allocs must not be empty")
	}
	for i, n := range c.Allocs {
		if n < 1 || i > 0 && n <= c.Allocs[i-1] {
			return cmdutil.Usagef("start with the smallest size", "--allocs must be ascending: %d", n)
		}
	}
	return nil
}

// growth measures every size.
func (b *bencher) growth(ctx context.Context, c bench.GrowthConfig) (points []*bench.GrowthPoint, err error) {
	b.env.HandlesInterrupt.Store(true) // stop the server processes on interrupt
	progress := b.env.Progress()
	defer progress.Done()
	o, err := b.options(showing(progress))
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (*bench.Target, error) { return bench.Open(ctx, o) }
	err = bench.Growth(ctx, c, open, func(p *bench.GrowthPoint) { points = append(points, p) })
	return points, cmdutil.InterruptError(ctx, err)
}

func growthPage(p cmdutil.Page, points []*bench.GrowthPoint) {
	t := cmdutil.NewTable("NODES>", "INSTANCES>", "INST/S>", "CPU>", "PLACED P50>", "P99>", "MEMORY>", "SNAPSHOT>", "SAVED>", "RESTORED>", "HEARTBEATS/S>", "IDLE>")
	for _, r := range points {
		t.Row(
			cmdutil.Thousands(r.Nodes), cmdutil.Thousands(r.Allocs), cmdutil.Thousands(int(r.AllocsPerSecond)), fmt.Sprintf("%.0f µs", r.CPUPerAlloc),
			milliseconds(r.Placed.P50), milliseconds(r.Placed.P99), cmdutil.FormatBytes(r.MemoryBytes), cmdutil.FormatBytes(r.SnapshotBytes),
			seconds(r.SnapshotSeconds), seconds(r.RestoreSeconds), fmt.Sprintf("%.0f", r.Heartbeats), fmt.Sprintf("%.2f", r.IdleCPU),
		)
	}
	p.Table(t)
}
