package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
)

func newBenchCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put a server under load and measure what it makes of it",
		Long: `Put a server under load and measure what it makes of it. Each command starts a
server of its own, with its log on the disk, in a temporary folder that goes when it
ends, and connects simulated nodes to it over HTTP; --addr takes a server that runs,
which should be nobody's: the load is meant to be heavy.`,
		Example: "  cede bench storm\n  cede bench storm --nodes 500 --compare\n  cede bench churn --nodes 1000 --allocs 10000 --for 30s",
	}
	group(cmd)
	cmd.AddCommand(newBenchStormCmd(env), newBenchChurnCmd(env), newBenchFillCmd(env))
	return cmd
}

// bencher is what the commands have in common.
type bencher struct {
	env     *Env
	out     *output
	conn    *connection
	dir     string
	metrics string
	seed    uint64
	nodes   int
	workers int
}

func benchFlags(cmd *cobra.Command, env *Env, nodes int) *bencher {
	b := &bencher{env: env, out: outputFlags(cmd, env), conn: &connection{env: env}}
	f := cmd.Flags()
	f.IntVar(&b.nodes, "nodes", nodes, "simulate `N` nodes")
	f.Uint64Var(&b.seed, "seed", 1, "`N` that chooses how large nodes and jobs are")
	f.StringVar(&b.dir, "data-dir", "", "make the server's temporary folder in `DIR`: the disk that is measured (default the system's)")
	f.IntVar(&b.workers, "workers", 0, "have its server work on `N` evaluations at a time (default half the processors)")
	f.StringVar(&b.conn.addr, "addr", "", "`URL` of a server that runs, in place of one of its own")
	f.StringVar(&b.conn.token, "token", "", "`TOKEN` for that server, or file:PATH of a file that holds it (CEDE_TOKEN)")
	f.StringVar(&b.metrics, "metrics", "", "`HOST:PORT` of that server's metrics; without it its memory is not measured")
	return b
}

// options is what to measure, for those who are many.
func (b *bencher) options(show func(string, int, int)) (bench.Options, error) {
	o := bench.Options{Dir: b.dir, Metrics: b.metrics, Workers: b.workers, Build: b.env.Build, Log: b.env.Stderr, Getenv: b.env.Getenv, Show: show}
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
	if b.conn.addr == "" && b.metrics != "" {
		return usagef("leave --metrics out", "--metrics is for a server that runs, which --addr names")
	}
	if b.conn.addr != "" && b.dir != "" {
		return usagef("leave --data-dir out", "--data-dir is for a server of its own, and --addr names one that runs")
	}
	if b.workers < 0 {
		return usagef("ask for 1 or more, or leave it out", "--workers %d: nothing would be worked on", b.workers)
	}
	return nil
}

// on measures on one server after the other what f does, each its own.
func (b *bencher) on(ctx context.Context, change func(*bench.Options), f func(*bench.Target) error) (err error) {
	b.env.endsItself.Store(true) // there is something to clean up
	progress := b.env.progress()
	defer progress.Done()
	o, err := b.options(func(what string, done, total int) {
		progress.Show(func(elapsed time.Duration) string {
			return fmt.Sprintf("%s: %s of %s, %v", what, thousands(done), thousands(total), elapsed.Round(time.Second))
		})
	})
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

// seconds is a time as tables show it.
func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }
