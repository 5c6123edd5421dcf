package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func newFailoverCmd(env *cmdutil.Env) *cobra.Command {
	c := bench.FailoverConfig{}
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Measure writes after the leader is killed",
		Long: `Measure how long a pool of three servers accepts no writes after its leader is killed.
The servers run on loopback, each in its own process with its log on disk, while
clients register jobs and simulated nodes run them. The leader is killed (SIGKILL),
restarted, and so on.

Times start with the signal. The first write is that of clients that try both remaining
servers continuously; an ordinary client tries one after the other, with pauses. At the
end every acknowledged write must exist, every evaluation must have ended, and all
servers must have the same state; otherwise the command fails.`,
		Example: "  cede-bench failover\n  cede-bench failover --rounds 50\n  cede-bench failover --election 250ms -o json",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	f := cmd.Flags()
	f.IntVar(&c.Rounds, "rounds", 10, "kill the leader `N` times")
	f.IntVar(&c.Writers, "writers", 4, "register jobs from `N` clients during the test")
	f.IntVar(&c.Nodes, "nodes", 10, "simulate `N` nodes")
	f.DurationVar(&c.Election, "election", 500*time.Millisecond, "election timeout of the servers as `DURATION`")
	f.StringVar(&c.Dir, "data-dir", "", "create the temporary folder of the servers in `DIR`, on the disk to measure (default: that of the system)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		for name, n := range map[string]int{"rounds": c.Rounds, "writers": c.Writers, "nodes": c.Nodes} {
			if n < 1 {
				return cmdutil.Usagef("use 1 or more", "--%s must be at least 1, not %d", name, n)
			}
		}
		if c.Election < 100*time.Millisecond {
			return cmdutil.Usagef("use 100ms or more", "--election %v is too short", c.Election)
		}
		r, err := failover(cmd, env, c)
		if err != nil {
			return err
		}
		return out.Show(cmdutil.Document{Data: r, Names: []string{"failover"}, Page: func(p cmdutil.Page) { failoverPage(p, r) }})
	}
	return cmd
}

func failover(cmd *cobra.Command, env *cmdutil.Env, c bench.FailoverConfig) (r *bench.FailoverResult, err error) {
	if c.Program, err = serverBinary(); err != nil {
		return nil, err
	}
	env.HandlesInterrupt.Store(true) // stop the server processes on interrupt
	progress := env.Progress()
	defer progress.Done()
	c.Show = func(what string, done, total int) {
		progress.Show(func(elapsed time.Duration) string {
			return fmt.Sprintf("%s: %d of %d, %v", what, done, total, elapsed.Round(time.Second))
		})
	}
	r, err = bench.Failover(cmd.Context(), c)
	return r, cmdutil.InterruptError(cmd.Context(), err)
}

func failoverPage(p cmdutil.Page, r *bench.FailoverResult) {
	p.Properties("rounds", cmdutil.Thousands(r.Rounds), "writes acknowledged", cmdutil.Thousands(int(r.Acknowledged)), "refused", cmdutil.Thousands(int(r.Failed)), "lost", "0",
		"state of every server", r.StateHash)
	p.Title("After the leader was killed")
	latencyTable(p, "STEP", []latency{
		{"an election begins", r.Noticed},
		{"a server is elected", r.Elected},
		{"it takes writes", r.Ready},
		{"first committed write", r.Write},
		{"first of an ordinary client", r.Client},
		{"each ordinary client's first", r.Clients},
	})
}
