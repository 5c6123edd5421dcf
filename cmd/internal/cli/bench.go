package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
	"github.com/cede-scheduler/cede/cmd/internal/term"
)

func newBenchCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put a server under load and measure what it makes of it",
		Long: `Put a server under load and measure what it makes of it. Each command starts a
server of its own, with its log on the disk, in a temporary folder that goes when it
ends, and connects simulated nodes to it over HTTP. --servers 3 starts a pool of
three, each a process, and so does 1: then the server's memory is its own, without
that of the nodes. --addr takes servers that run, which should be nobody's: the load
is meant to be heavy.`,
		Example: "  cede bench storm\n  cede bench storm --nodes 500 --compare\n  cede bench churn --nodes 1000 --allocs 10000 --for 30s",
	}
	group(cmd)
	cmd.AddCommand(newBenchStormCmd(env), newBenchChurnCmd(env), newBenchFillCmd(env), newBenchGrowthCmd(env), newBenchWorkersCmd(env), newBenchFailoverCmd(env))
	return cmd
}

// bencher is what the commands have in common.
type bencher struct {
	env     *Env
	out     *output
	conn    *connection
	dir     string
	metrics []string
	seed    uint64
	nodes   int
	workers int
	servers int
}

func benchFlags(cmd *cobra.Command, env *Env, nodes int) *bencher {
	b := &bencher{env: env, out: outputFlags(cmd, env), conn: &connection{env: env}}
	f := cmd.Flags()
	f.IntVar(&b.nodes, "nodes", nodes, "simulate `N` nodes")
	f.Uint64Var(&b.seed, "seed", 1, "`N` that chooses how large nodes and jobs are")
	f.StringVar(&b.dir, "data-dir", "", "make the server's temporary folder in `DIR`: the disk that is measured (default the system's)")
	f.IntVar(&b.servers, "servers", 0, "start `N` servers, each a process of its own (default one, in this process)")
	f.IntVar(&b.workers, "workers", 0, "have each of its servers work on `N` evaluations at a time (default half the processors)")
	f.StringVar(&b.conn.addr, "addr", "", "`URL` of a server that runs, or of a pool's separated by commas, in place of its own")
	f.StringVar(&b.conn.token, "token", "", "`TOKEN` for that server, or file:PATH of a file that holds it (CEDE_TOKEN)")
	f.StringSliceVar(&b.metrics, "metrics", nil, "`HOST:PORT` of those servers' metrics, all of them; without it memory is not measured")
	return b
}

// options is what to measure, for those who are many.
func (b *bencher) options(show func(string, int, int)) (bench.Options, error) {
	o := bench.Options{Dir: b.dir, Metrics: b.metrics, Servers: b.servers, Workers: b.workers, Build: b.env.Build, Log: b.env.Stderr, Getenv: b.env.Getenv, Show: show}
	if b.servers > 0 {
		self, err := os.Executable()
		if err != nil {
			return o, err
		}
		o.Program = self
	}
	if b.conn.addr == "" {
		return o, nil
	}
	conf, err := b.conn.config()
	o.Server = &conf
	return o, err
}

// check reports what makes no sense.
func (b *bencher) check(amounts ...any) error {
	if err := b.out.resolve(); err != nil {
		return err
	}
	amounts = append(amounts, "nodes", b.nodes)
	for i := 0; i+1 < len(amounts); i += 2 {
		if n := amounts[i+1].(int); n < 1 {
			return usagef("ask for 1 or more", "--%v %d: there would be nothing to measure", amounts[i], n)
		}
	}
	if b.conn.addr == "" && len(b.metrics) > 0 {
		return usagef("leave --metrics out", "--metrics is for a server that runs, which --addr names")
	}
	if b.conn.addr != "" && b.dir != "" {
		return usagef("leave --data-dir out", "--data-dir is for a server of its own, and --addr names one that runs")
	}
	if b.conn.addr != "" && b.servers != 0 {
		return usagef("leave --servers out", "--servers is for servers of its own, and --addr names those that run")
	}
	if b.servers < 0 {
		return usagef("ask for 1 or 3, or leave it out", "--servers %d: there would be nothing to measure", b.servers)
	}
	if b.servers > mostServers {
		return usagef(fmt.Sprintf("ask for 1, 3 or 5; %d at most", mostServers), "--servers %d: each is a process, and each writes what every one writes", b.servers)
	}
	if info, err := os.Stat(b.dir); b.dir != "" && (err != nil || !info.IsDir()) {
		return usagef("name a folder that there is, on the disk to measure", "--data-dir %s: there is no such folder", b.dir)
	}
	if b.workers < 0 {
		return usagef("ask for 1 or more, or leave it out", "--workers %d: nothing would be worked on", b.workers)
	}
	return nil
}

// mostServers is how many servers a measurement starts: no pool of voters is larger.
const mostServers = 9

// on measures on one server after the other what f does, each its own.
func (b *bencher) on(ctx context.Context, change func(*bench.Options), f func(*bench.Target) error) (err error) {
	b.env.endsItself.Store(true) // there is something to clean up
	progress := b.env.progress()
	defer progress.Done()
	o, err := b.options(showing(progress))
	if err != nil {
		return err
	}
	change(&o)
	t, err := bench.Open(ctx, o)
	if err != nil {
		return interruptedBy(ctx, err)
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	return interruptedBy(ctx, f(t))
}

// showing shows what is under way.
func showing(progress *term.Progress) func(what string, done, total int) {
	return func(what string, done, total int) {
		progress.Show(func(elapsed time.Duration) string {
			return fmt.Sprintf("%s: %s of %s, %v", what, thousands(done), thousands(total), elapsed.Round(time.Second))
		})
	}
}

// seconds is a time as tables show it.
func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }

// vain is what workers planned in vain, for pages.
func vain(c *bench.Conflicts) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s of %s instances (%.1f %%)", thousands(c.Rejected), thousands(c.Placed+c.Rejected), 100*c.Share)
}
