package benchcli

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// stormBench is one `cede-bench storm`.
type stormBench struct {
	*bencher
	jobs                     int
	ttl, grace               time.Duration
	noShedding, noCoalescing bool
	compare                  bool
}

func newStormCmd(env *cmdutil.Env) *cobra.Command {
	s := &stormBench{}
	cmd := &cobra.Command{
		Use:   "storm",
		Short: "Measure two storms of evaluations",
		Long: `Measure two storms of evaluations. First, system jobs and nodes are registered while no
evaluations are processed, which creates one log entry and one evaluation of each job
per node; then this backlog is processed. Second, after the nodes have started their
tasks and reported it, all of them stop sending heartbeats; the storm is measured from
the expiry of the last lease.

PROCESSED counts evaluations that a worker processed, CANCELLED those that a newer one
superseded, and ENTRIES the entries of the log.

--compare runs it four times: with both optimizations, without shedding, without
coalescing, and without both. Without shedding every evaluation is processed, which
takes long.`,
		Example: "  cede-bench storm\n  cede-bench storm --nodes 500 --compare\n  cede-bench storm --no-shedding -o json",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	s.bencher = benchFlags(cmd, env, 5000)
	f := cmd.Flags()
	f.IntVar(&s.jobs, "jobs", 10, "register `N` system jobs")
	f.DurationVar(&s.ttl, "ttl", 10*time.Second, "heartbeat TTL of nodes, from `DURATION` to twice that")
	f.DurationVar(&s.grace, "grace", 10*time.Second, "grace period of `DURATION` after a missed heartbeat")
	f.BoolVar(&s.noShedding, "no-shedding", false, "process superseded evaluations as well")
	f.BoolVar(&s.noCoalescing, "no-coalescing", false, "write one log entry for each failed node")
	f.BoolVar(&s.compare, "compare", false, "run with and without shedding and coalescing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := s.check("jobs", s.jobs); err != nil {
			return err
		}
		if s.compare && (s.noShedding || s.noCoalescing) {
			return cmdutil.Usagef("remove the other flags", "--compare cannot be combined with --no-shedding or --no-coalescing")
		}
		if s.ttl <= 0 || s.grace <= 0 {
			return cmdutil.Usagef("use durations such as 10s", "--ttl %v and --grace %v must both be positive", s.ttl, s.grace)
		}
		return s.run(cmd)
	}
	return cmd
}

func (s *stormBench) run(cmd *cobra.Command) error {
	variants := []bench.StormConfig{{Shedding: !s.noShedding, Coalescing: !s.noCoalescing}}
	if s.compare {
		variants = []bench.StormConfig{
			{Shedding: true, Coalescing: true},
			{Shedding: false, Coalescing: true},
			{Shedding: true, Coalescing: false},
			{Shedding: false, Coalescing: false},
		}
	}
	var results []*bench.StormResult
	for _, c := range variants {
		c.Nodes, c.Jobs, c.Seed = s.nodes, s.jobs, s.seed
		err := s.on(cmd.Context(), s.setTTL, func(t *bench.Target) error {
			r, err := bench.Storm(cmd.Context(), t, c)
			results = append(results, r)
			return err
		})
		if err != nil {
			return err
		}
	}
	var data any = results
	if !s.compare {
		data = results[0]
	}
	return s.out.Show(cmdutil.Document{Data: data, Names: []string{"storm"}, Page: func(p cmdutil.Page) { s.page(p, results) }})
}

// setTTL sets the heartbeat TTL independent of the number of nodes.
func (s *stormBench) setTTL(o *bench.Options) {
	o.TTL, o.Grace = s.ttl, s.grace
	o.Rate = max(50, int(math.Ceil(float64(s.nodes)/s.ttl.Seconds())))
}

func (s *stormBench) page(p cmdutil.Page, results []*bench.StormResult) {
	p.Printf("%s nodes, %s system jobs\n", cmdutil.Thousands(s.nodes), cmdutil.Thousands(s.jobs))
	t := cmdutil.NewTable("SHEDDING", "COALESCING", "STORM", "TIME>", "CREATED>", "PROCESSED>", "CANCELLED>", "ENTRIES>")
	if len(results) == 1 {
		t = cmdutil.NewTable("PHASE", "TIME>", "CREATED>", "PROCESSED>", "CANCELLED>", "ENTRIES>")
	}
	for _, r := range results {
		for _, line := range []struct {
			name  string
			phase *bench.Phase
			storm bool
		}{{"register", &r.Register, false}, {"backlog", &r.Backlog, true}, {"start", &r.Start, false}, {"silence", &r.Silence, true}} {
			e := line.phase.Evaluations
			cells := []string{
				line.name, seconds(line.phase.Seconds), cmdutil.Thousands(e.Created), cmdutil.Thousands(e.Processed), cmdutil.Thousands(e.Cancelled), fmt.Sprint(line.phase.Entries),
			}
			switch {
			case len(results) == 1:
				t.Row(cells...)
			case line.storm:
				t.Row(append([]string{cmdutil.YesNo(r.Shedding), cmdutil.YesNo(r.Coalescing)}, cells...)...)
			}
		}
	}
	p.Table(t)
}
