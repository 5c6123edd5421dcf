package benchcli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func newWorkersCmd(env *cmdutil.Env) *cobra.Command {
	c := bench.FillConfig{}
	var sizes []int
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "Measure workers on one, two and three servers",
		Long: `Measure the throughput of workers on one, two and three servers. For each number, servers
are started, each in its own process, and a cluster is filled as by cede-bench c2m.

INST/S is the rate of placements. IN VAIN counts instances that workers planned for nodes
that other workers filled first, and that were planned again. MEMORY is the resident
set of the largest server.`,
		Example: "  cede-bench workers\n  cede-bench workers --servers 1,3 --workers 2 -o json",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	b := &bencher{env: env, out: cmdutil.OutputFlags(cmd, env), conn: &cmdutil.Connection{Env: env}}
	f := cmd.Flags()
	f.IntSliceVar(&sizes, "servers", []int{1, 2, 3}, "start `N,N` servers, one size after the other")
	f.IntVar(&b.workers, "workers", 0, "process `N` evaluations at a time on each server (default: half the processors)")
	f.IntVar(&b.nodes, "nodes", 1000, "simulate `N` nodes")
	f.IntVar(&c.Allocs, "allocs", 100_000, "place `N` instances")
	f.IntVar(&c.Each, "each", 100, "`N` instances per job")
	f.Uint64Var(&b.seed, "seed", 1, "`N` is the seed of the sizes of nodes and jobs")
	f.StringVar(&b.dir, "data-dir", "", "create the temporary folder of the servers in `DIR`, on the disk to measure (default: that of the system)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		amounts := []any{"allocs", c.Allocs, "each", c.Each}
		for _, n := range sizes {
			amounts = append(amounts, "servers", n)
		}
		if err := b.check(amounts...); err != nil {
			return err
		}
		c.Nodes, c.Seed = b.nodes, b.seed
		points, err := b.sizes(cmd, c, sizes)
		if err != nil {
			return err
		}
		return b.out.Show(cmdutil.Document{Data: points, Names: []string{"workers"}, Page: func(p cmdutil.Page) { workersPage(p, points) }})
	}
	return cmd
}

// workersPoint is the result for one number of servers.
type workersPoint struct {
	Servers int `json:"servers"`
	Workers int `json:"workers"` // of all servers
	*bench.FillResult
}

// sizes fills a cluster on pools of several sizes, one after the other.
func (b *bencher) sizes(cmd *cobra.Command, c bench.FillConfig, sizes []int) (points []workersPoint, err error) {
	each := b.workers
	if each == 0 {
		each = max(1, runtime.NumCPU()/2)
	}
	for _, n := range sizes {
		b.servers = n
		err := b.on(cmd.Context(), func(o *bench.Options) { o.Workers = each }, func(t *bench.Target) error {
			r, err := bench.Fill(cmd.Context(), t, c)
			points = append(points, workersPoint{Servers: n, Workers: n * each, FillResult: r})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%d servers: %w", n, err)
		}
	}
	return points, nil
}

func workersPage(p cmdutil.Page, points []workersPoint) {
	t := cmdutil.NewTable("SERVERS>", "WORKERS>", "INSTANCES>", "PLACED WITHIN>", "INST/S>", "IN VAIN>", "MEMORY>")
	for _, r := range points {
		t.Row(
			fmt.Sprint(r.Servers), fmt.Sprint(r.Workers), cmdutil.Thousands(r.Allocs), seconds(r.Seconds), cmdutil.Thousands(int(r.AllocsPerSecond)),
			conflictText(r.Conflicts), cmdutil.FormatBytes(r.MemoryBytes),
		)
	}
	p.Table(t)
}
