package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func newChurnCmd(env *cmdutil.Env) *cobra.Command {
	c := bench.ChurnConfig{}
	cmd := &cobra.Command{
		Use:   "churn",
		Short: "Measure a large cluster in steady operation",
		Long: `Measure a large cluster in steady operation. The cluster is filled with jobs whose
instances nodes start and report; then single jobs are submitted one after the other
on the idle cluster; then jobs of ten instances are started and stopped at a constant
rate while other clients read.

Latencies are those of a client over HTTP. Memory is the resident set of the server
process, at most and at the end; without --servers the server runs in this process,
and the figure includes the simulated nodes.`,
		Example: "  cede-bench churn\n  cede-bench churn --nodes 1000 --allocs 10000 --for 30s\n  cede-bench churn --servers 1\n  cede-bench churn --addr http://127.0.0.1:4646 --metrics 127.0.0.1:4649",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	b := benchFlags(cmd, env, 10_000)
	f := cmd.Flags()
	f.IntVar(&c.Allocs, "allocs", 100_000, "fill the cluster with `N` instances")
	f.IntVar(&c.Each, "each", 100, "`N` instances per job")
	f.DurationVar(&c.For, "for", time.Minute, "start and stop jobs for `DURATION`")
	f.Float64Var(&c.Rate, "rate", 10, "submit `N` jobs per second during that time")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := b.check("allocs", c.Allocs, "each", c.Each); err != nil {
			return err
		}
		if c.For < time.Second || c.Rate <= 0 {
			return cmdutil.Usagef("use at least 1s, and more than 0 jobs per second", "--for %v and --rate %v are too small", c.For, c.Rate)
		}
		c.Nodes, c.Seed = b.nodes, b.seed
		var r *bench.ChurnResult
		err := b.on(cmd.Context(), func(*bench.Options) {}, func(t *bench.Target) (err error) {
			r, err = bench.Churn(cmd.Context(), t, c)
			return err
		})
		if err != nil {
			return err
		}
		return b.out.Show(cmdutil.Document{Data: r, Names: []string{"churn"}, Page: func(p cmdutil.Page) { churnPage(p, r) }})
	}
	return cmd
}

func churnPage(p cmdutil.Page, r *bench.ChurnResult) {
	fillPage(p, r.Fill)
	p.Title("Churn")
	c := &r.Churn
	p.Properties("for", seconds(c.Seconds), "jobs", cmdutil.Thousands(c.Jobs), "instances", cmdutil.Thousands(c.Allocs), "log entries", cmdutil.Thousands(int(c.Entries)),
		"planned in vain", conflictText(c.Conflicts),
		"heartbeats a second", fmt.Sprintf("%.0f", r.Heartbeats), "requests of nodes that failed", fmt.Sprint(r.HeartbeatFailures),
		"processors used", cpuText(r.CPU), "memory at the end", memoryText(r))
	p.Title("Latencies, as a client sees them")
	latencyTable(p, "OF", []latency{
		{"submitted to placed, idle", r.Idle},
		{"submitted to placed, churn", c.Placed},
		{"register a job", c.Register},
		{"status of a job", c.Status},
		{"list of 100 jobs", c.List},
		{"register a node, all at once", r.Joined},
		{"heartbeat of a node", c.Heartbeat},
	})
}

// memoryText returns the resident memory after the churn and what it includes; "" if
// unknown.
func memoryText(r *bench.ChurnResult) string {
	switch {
	case r.MemoryEndBytes == 0:
		return ""
	case r.OwnProcess:
		return cmdutil.FormatBytes(r.MemoryEndBytes) + ", of the server's process alone"
	}
	return cmdutil.FormatBytes(r.MemoryEndBytes) + ", of the server and the simulated nodes"
}

// latency is a named latency.
type latency struct {
	of string
	bench.Latency
}

func latencyTable(p cmdutil.Page, title string, list []latency) {
	t := cmdutil.NewTable(title, "COUNT>", "P50>", "P99>", "MAX>")
	for _, l := range list {
		t.Row(l.of, fmt.Sprint(l.Count), milliseconds(l.P50), milliseconds(l.P99), milliseconds(l.Max))
	}
	p.Table(t)
}

func milliseconds(ms float64) string { return fmt.Sprintf("%.1f ms", ms) }

// cpuText returns a number of processors; "" if unknown.
func cpuText(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v)
}
