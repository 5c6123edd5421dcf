package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newOperatorBrokerCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Pause, resume and inspect the evaluation broker",
		Long: `Pause, resume and inspect the evaluation broker. While it is paused, jobs are accepted
and evaluations are retained, but nothing is placed or evicted.

The pause applies to the whole cluster. To pause one server, set server.workers to 0 in
its configuration.`,
		Example: "  cede operator broker status\n  cede operator broker pause",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(
		brokerCmd(env, "pause", "Stop dequeuing evaluations; they are retained", func(ctx context.Context, o client.Operator) (*client.BrokerStatus, error) {
			return awaitBrokerState(ctx, env, o, true, o.BrokerPause)
		}),
		brokerCmd(env, "resume", "Resume dequeuing evaluations", func(ctx context.Context, o client.Operator) (*client.BrokerStatus, error) {
			return awaitBrokerState(ctx, env, o, false, o.BrokerResume)
		}),
		brokerCmd(env, "status", "Count the pending evaluations by state", func(ctx context.Context, o client.Operator) (*client.BrokerStatus, error) {
			return o.BrokerStatus(ctx)
		}),
	)
	return cmd
}

func brokerCmd(env *cmdutil.Env, verb, short string, do func(context.Context, client.Operator) (*client.BrokerStatus, error)) *cobra.Command {
	cmd := &cobra.Command{Use: verb, Short: short, Args: cmdutil.PositionalArgs(0, 0, "no arguments"), Example: "  cede operator broker " + verb}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		s, err := do(ctx, c.Client.Operator())
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: s, Names: []string{brokerState(s)}, Page: func(p cmdutil.Page) {
			p.Printf("The broker is %s\n", brokerState(s))
			if s.Workers != nil {
				p.Printf("Workers of the leader: %s\n", workersText(s.Workers))
			}
			p.Title("Evaluations")
			t := cmdutil.NewTable("TYPE", "READY>", "UNACKED>", "PENDING>", "DELAYED>", "BACKOFF>", "BLOCKED>", "FAILED>", "CANCELABLE>")
			row := func(name string, c client.BrokerCounts) {
				cells := []string{name}
				for _, n := range []int{c.Ready, c.Unacked, c.Pending, c.Delayed, c.Backoff, c.Blocked, c.Failed, c.Cancelable} {
					cells = append(cells, fmt.Sprint(n))
				}
				t.Row(cells...)
			}
			for _, kind := range slices.Sorted(maps.Keys(s.ByType)) {
				row(kind, s.ByType[kind])
			}
			row("all", s.BrokerCounts)
			p.Table(t)
		}}, nil
	})
}

// awaitBrokerState changes the broker and polls until the change is visible: it is
// first written to the log and applied a moment later.
func awaitBrokerState(ctx context.Context, env *cmdutil.Env, o client.Operator, paused bool, change func(context.Context) (*client.BrokerStatus, error)) (*client.BrokerStatus, error) {
	s, err := change(ctx)
	for range 20 {
		if err != nil || s.Paused == paused || !s.Enabled && !s.Paused {
			break
		}
		env.Sleep(ctx, 100*time.Millisecond)
		s, err = o.BrokerStatus(ctx)
	}
	return s, err
}

// brokerState returns paused, running or the reason why this server has no broker.
func brokerState(s *client.BrokerStatus) string {
	switch {
	case s.Paused:
		return "paused"
	case s.Enabled:
		return "running"
	}
	return "not on this server: it is not the leader"
}

// workersText describes the workers of a server; "" if the server is too old to report
// them.
func workersText(w *client.Workers) string {
	switch {
	case w == nil:
		return ""
	case w.Wanted == 0:
		return "paused (server.workers is 0)"
	case w.Running < w.Wanted:
		return fmt.Sprintf("%d of %d", w.Running, w.Wanted)
	}
	return fmt.Sprint(w.Wanted)
}
