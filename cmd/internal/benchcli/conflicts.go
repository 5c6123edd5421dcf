package benchcli

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench/conflict"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// conflictsBench is one `cede-bench conflicts`.
type conflictsBench struct {
	env      *cmdutil.Env
	out      *cmdutil.Output
	c        conflict.Config
	decide   []time.Duration
	batch    []int
	buckets  []int
	duration time.Duration
}

func newConflictsCmd(env *cmdutil.Env) *cobra.Command {
	b := &conflictsBench{env: env}
	cmd := &cobra.Command{
		Use:   "conflicts",
		Short: "Measure conflicts of schedulers that share a state",
		Long: `Measure how often schedulers that share a state conflict, as in the evaluation of Omega
(EuroSys 2013). Workers, schedulers and the applier are those of a server; time is
virtual, so that the result does not depend on this machine. No server is started.

One scheduler places service jobs, others share the batch jobs. A decision takes
--decision (service jobs) or --batch-decision, and 5 ms for each task; its plan conflicts if
another scheduler has filled the nodes meanwhile. Arrivals and sizes are those of the
Google trace of 2011, in proportion to --nodes.

With --buckets N each job prefers the nodes of a random one of N buckets, similar to the
random first fit of Omega. 0 is the order of cede: all schedulers rank nodes alike.

CONFLICTS is the number of rejected plans per decided job, BUSY the share of the time that
a scheduler spends on decisions, and WAIT the mean time in its queue. Lists of values
measure every combination.`,
		Example: "  cede-bench conflicts --nodes 1000\n  cede-bench conflicts --decision 1s,10s,100s --buckets 0,256\n  cede-bench conflicts --schedulers 1,4,16 --batch-rate 4 -o json",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	b.out = cmdutil.OutputFlags(cmd, env)
	f := cmd.Flags()
	f.IntVar(&b.c.Nodes, "nodes", 12_477, "simulate `N` nodes")
	f.Uint64Var(&b.c.Seed, "seed", 1, "`N` is the seed of the workload")
	f.DurationVar(&b.duration, "for", time.Hour, "measure for a virtual `DURATION`")
	f.Float64Var(&b.c.Full, "full", 0.6, "standing tasks hold a `SHARE` of the processors")
	f.DurationSliceVar(&b.decide, "decision", []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, 100 * time.Second}, "decision time `DURATION,DURATION` of a service job")
	f.DurationVar(&b.c.BatchTime, "batch-decision", 100*time.Millisecond, "decision time `DURATION` of a batch job")
	f.IntSliceVar(&b.batch, "schedulers", []int{1}, "`N,N` schedulers share the batch jobs")
	f.Float64Var(&b.c.BatchRate, "batch-rate", 1, "multiply the arrivals of batch jobs by `N`")
	f.IntSliceVar(&b.buckets, "buckets", []int{0, 256}, "distribute jobs over `N,N` buckets of nodes; 0: none")
	f.BoolVar(&b.c.Gang, "gang", false, "place all tasks of a job or none")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := b.check(); err != nil {
			return err
		}
		points, err := b.measure(cmd.Context())
		if err != nil {
			return cmdutil.InterruptError(cmd.Context(), err)
		}
		return b.out.Show(cmdutil.Document{Data: points, Names: []string{"conflicts"}, Page: func(p cmdutil.Page) { conflictsPage(p, points) }})
	}
	return cmd
}

// mostConflictNodes limits the nodes, which are all kept in memory.
const mostConflictNodes = 200_000

func (b *conflictsBench) check() error {
	if err := b.out.Resolve(); err != nil {
		return err
	}
	if b.c.Nodes < 1 || b.c.Nodes > mostConflictNodes {
		return cmdutil.Usagef("use a number such as 1000", "--nodes must be between 1 and %d, not %d", mostConflictNodes, b.c.Nodes)
	}
	if b.duration <= 0 || b.c.BatchTime < 0 {
		return cmdutil.Usagef("use durations such as 1h and 100ms", "--for %v must be positive and --batch-decision %v must not be negative", b.duration, b.c.BatchTime)
	}
	if math.IsNaN(b.c.Full) || b.c.Full < 0 || b.c.Full >= 1 {
		return cmdutil.Usagef("use a share such as 0.6", "--full must be at least 0 and less than 1, not %v", b.c.Full)
	}
	if math.IsNaN(b.c.BatchRate) || b.c.BatchRate <= 0 || b.c.BatchRate > 1000 {
		return cmdutil.Usagef("use a factor such as 4", "--batch-rate must be greater than 0 and at most 1000, not %v", b.c.BatchRate)
	}
	for _, d := range b.decide {
		if d < 0 {
			return cmdutil.Usagef("use durations such as 10s", "--decision must not be negative, not %v", d)
		}
	}
	for _, n := range b.batch {
		if n < 1 || n > 1000 {
			return cmdutil.Usagef("use numbers such as 1,4,16", "--schedulers must be between 1 and 1000, not %d", n)
		}
	}
	for _, n := range b.buckets {
		if n < 0 || n > b.c.Nodes {
			return cmdutil.Usagef("use 0, or a number such as 256", "--buckets must be between 0 and the number of nodes, not %d", n)
		}
	}
	if len(b.decide) == 0 || len(b.batch) == 0 || len(b.buckets) == 0 {
		return cmdutil.Usagef("add a value, or remove the flag", "--decision, --schedulers and --buckets require a value each")
	}
	return nil
}

// conflictsPoint is the result of one combination.
type conflictsPoint struct {
	Decision   float64 `json:"decision"` // seconds
	Schedulers int     `json:"schedulers"`
	Buckets    int     `json:"buckets"`
	Gang       bool    `json:"gang"`
	*conflict.Result
}

func (b *conflictsBench) measure(ctx context.Context) ([]conflictsPoint, error) {
	b.env.HandlesInterrupt.Store(true)
	progress := b.env.Progress()
	defer progress.Done()
	show := showing(progress)
	var points []conflictsPoint
	b.c.Duration, b.c.TaskTime, b.c.ServiceRate = b.duration, 5*time.Millisecond, 1
	for _, buckets := range b.buckets {
		for _, schedulers := range b.batch {
			for _, decision := range b.decide {
				show("combinations are measured", len(points), len(b.buckets)*len(b.batch)*len(b.decide))
				c := b.c
				c.Buckets, c.BatchSchedulers, c.ServiceTime = buckets, schedulers, decision
				r, err := conflict.Measure(ctx, c)
				if err != nil {
					return nil, err
				}
				points = append(points, conflictsPoint{Decision: decision.Seconds(), Schedulers: schedulers, Buckets: buckets, Gang: c.Gang, Result: r})
			}
		}
	}
	return points, nil
}

func conflictsPage(p cmdutil.Page, points []conflictsPoint) {
	t := cmdutil.NewTable("BUCKETS>", "SCHEDULERS>", "DECISION>", "SERVICE JOBS>", "CONFLICTS>", "BUSY>", "WAIT>", "BATCH JOBS>", "CONFLICTS>", "BUSY>", "WAIT>")
	for _, r := range points {
		row := []string{fmt.Sprint(r.Buckets), fmt.Sprint(r.Schedulers), fmt.Sprintf("%g s", r.Decision)}
		for _, c := range []*conflict.Class{&r.Service, &r.Batch} {
			row = append(row, cmdutil.Thousands(c.Decided), fmt.Sprintf("%.2f", c.Fraction), fmt.Sprintf("%.0f %%", 100*c.Busy), seconds(c.Wait))
		}
		t.Row(row...)
	}
	p.Table(t)
}
