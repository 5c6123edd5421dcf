package benchcli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
)

// Main runs the command line of env and returns the exit code.
func Main(env *cmdutil.Env) cmdutil.Exit { return cmdutil.Main(env, NewRootCmd) }

// NewRootCmd returns the command tree of cede-bench.
func NewRootCmd(env *cmdutil.Env) *cobra.Command {
	root := cmdutil.NewRoot(env, &cobra.Command{
		Use:   "cede-bench",
		Short: "Put servers under load and measure them",
		Long: `cede-bench puts servers under load and measures them. By default each command
starts a server in its own process, with the log on disk in a temporary folder that
is removed afterwards, and connects simulated nodes to it over HTTP. With
--servers N it starts N servers, each a process of its own, which keeps the memory
of a server apart from that of the simulated nodes.

It does not run tasks: nodes only report that they do. With --addr it measures
servers that already run; the load is heavy, so these must not serve users.`,
		Example: `  cede-bench storm
  cede-bench storm --nodes 500 --compare
  cede-bench churn --nodes 1000 --allocs 10000 --for 30s`,
	})
	root.AddCommand(newStormCmd(env), newChurnCmd(env), newFillCmd(env), newGrowthCmd(env), newWorkersCmd(env), newFailoverCmd(env), newConflictsCmd(env), newGPUsCmd(env))
	cmdutil.AddExitCodes(root)
	return root
}

// serverBinary returns the path of the cede binary that servers are started from:
// the one in the folder of this program, or else the one on the PATH.
func serverBinary() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	sibling := filepath.Join(filepath.Dir(self), "cede")
	if info, err := os.Stat(sibling); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		return sibling, nil
	}
	found, err := exec.LookPath("cede")
	if err != nil {
		return "", &cmdutil.Error{
			Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Err: err,
			Message: "cannot start servers: no cede binary in the folder of cede-bench or on the PATH",
			Hint:    "install cede in the same folder as cede-bench",
		}
	}
	return found, nil
}

// bencher holds the flags that the commands share.
type bencher struct {
	env     *cmdutil.Env
	out     *cmdutil.Output
	conn    *cmdutil.Connection
	dir     string
	metrics []string
	seed    uint64
	nodes   int
	workers int
	servers int
}

func benchFlags(cmd *cobra.Command, env *cmdutil.Env, nodes int) *bencher {
	b := &bencher{env: env, out: cmdutil.OutputFlags(cmd, env), conn: &cmdutil.Connection{Env: env}}
	f := cmd.Flags()
	f.IntVar(&b.nodes, "nodes", nodes, "simulate `N` nodes")
	f.Uint64Var(&b.seed, "seed", 1, "`N` is the seed of the sizes of nodes and jobs")
	f.StringVar(&b.dir, "data-dir", "", "create the temporary folder of the server in `DIR`, on the disk to measure (default: that of the system)")
	f.IntVar(&b.servers, "servers", 0, "start `N` servers, each in its own process (default: one in this process)")
	f.IntVar(&b.workers, "workers", 0, "process `N` evaluations at a time on each server (default: half the processors)")
	f.StringVar(&b.conn.Addr, "addr", "", "measure a running server at `URL`, or a pool at several URLs separated by commas")
	f.StringVar(&b.conn.Token, "token", "", "access `TOKEN` of that server, or file:PATH (CEDE_TOKEN)")
	f.StringSliceVar(&b.metrics, "metrics", nil, "`HOST:PORT` of the metrics listeners of all these servers; without it memory is not measured")
	return b
}

// options returns the options of a measurement.
func (b *bencher) options(show func(string, int, int)) (bench.Options, error) {
	o := bench.Options{Dir: b.dir, Metrics: b.metrics, Servers: b.servers, Workers: b.workers, Build: b.env.Build, Log: b.env.Stderr, Getenv: b.env.Getenv, Show: show}
	if b.servers > 0 {
		program, err := serverBinary()
		if err != nil {
			return o, err
		}
		o.Program = program
	}
	if b.conn.Addr == "" {
		return o, nil
	}
	conf, err := b.conn.ClientConfig()
	o.Server = &conf
	return o, err
}

// check validates the flags; amounts are pairs of a flag and its value.
func (b *bencher) check(amounts ...any) error {
	if err := b.out.Resolve(); err != nil {
		return err
	}
	amounts = append(amounts, "nodes", b.nodes)
	for i := 0; i+1 < len(amounts); i += 2 {
		if n := amounts[i+1].(int); n < 1 {
			return cmdutil.Usagef("use 1 or more", "--%v must be at least 1, not %d", amounts[i], n)
		}
	}
	if b.conn.Addr == "" && len(b.metrics) > 0 {
		return cmdutil.Usagef("remove --metrics, or add --addr", "--metrics requires --addr")
	}
	if b.conn.Addr != "" && b.dir != "" {
		return cmdutil.Usagef("remove --data-dir", "--data-dir cannot be combined with --addr")
	}
	if b.conn.Addr != "" && b.servers != 0 {
		return cmdutil.Usagef("remove --servers", "--servers cannot be combined with --addr")
	}
	if b.servers < 0 {
		return cmdutil.Usagef("use 1 or 3, or remove --servers", "--servers must be at least 1, not %d", b.servers)
	}
	if b.servers > mostServers {
		return cmdutil.Usagef(fmt.Sprintf("use 1, 3 or 5, at most %d", mostServers), "too many --servers: %d", b.servers)
	}
	if info, err := os.Stat(b.dir); b.dir != "" && (err != nil || !info.IsDir()) {
		return cmdutil.Usagef("use an existing folder on the disk to measure", "no such folder: --data-dir %s", b.dir)
	}
	if b.workers < 0 {
		return cmdutil.Usagef("use 1 or more, or remove --workers", "--workers must be at least 1, not %d", b.workers)
	}
	return nil
}

// mostServers limits the servers of a measurement: larger pools have no more voters.
const mostServers = 9

// on starts the servers, calls f and stops them.
func (b *bencher) on(ctx context.Context, change func(*bench.Options), f func(*bench.Target) error) (err error) {
	b.env.HandlesInterrupt.Store(true) // clean up on interrupt
	progress := b.env.Progress()
	defer progress.Done()
	o, err := b.options(showing(progress))
	if err != nil {
		return err
	}
	change(&o)
	t, err := bench.Open(ctx, o)
	if err != nil {
		return cmdutil.InterruptError(ctx, err)
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	return cmdutil.InterruptError(ctx, f(t))
}

// showing returns a function that shows progress.
func showing(progress *term.Progress) func(what string, done, total int) {
	return func(what string, done, total int) {
		progress.Show(func(elapsed time.Duration) string {
			return fmt.Sprintf("%s: %s of %s, %v", what, cmdutil.Thousands(done), cmdutil.Thousands(total), elapsed.Round(time.Second))
		})
	}
}

// seconds formats a time for tables.
func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }

// conflictText returns the share of instances in rejected plans.
func conflictText(c *bench.Conflicts) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s of %s instances (%.1f %%)", cmdutil.Thousands(c.Rejected), cmdutil.Thousands(c.Placed+c.Rejected), 100*c.Share)
}
