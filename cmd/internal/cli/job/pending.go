package job

import (
	"context"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// pendingWait returns the timeout of a blocking query for an evaluation. The first round
// is short, because most evaluations complete at once, and a reason for a delay should be
// reported early.
func pendingWait(round int) time.Duration {
	if round == 0 {
		return time.Second
	}
	return 5 * time.Second
}

// warnPendingReason prints why evaluations are not processed, unless it equals the reason
// that was printed last. It returns the reason.
func warnPendingReason(ctx context.Context, c *cmdutil.Connection, meta *client.QueryMeta, previous string) string {
	why := pendingReason(ctx, c, meta)
	if why != "" && why != previous {
		c.Env.Warn(why)
	}
	return why
}

// pendingReason returns why a due evaluation stays pending; "" if workers are processing
// it or the reason is unknown.
func pendingReason(ctx context.Context, c *cmdutil.Connection, meta *client.QueryMeta) string {
	const noLeader = "no leader: nothing is placed until one is elected; `cede server members` lists the servers"
	if !meta.KnownLeader {
		return noLeader
	}
	s, err := c.Client.Operator().BrokerStatus(ctx)
	switch {
	case client.HasCode(err, client.CodeNoLeader):
		return noLeader
	case err != nil:
		return "" // the status covers all namespaces, but a token may be limited to one
	case s.Paused:
		return "the broker is paused: nothing is placed until `cede operator broker resume`"
	case s.Workers == nil:
		return ""
	case s.Workers.Wanted == 0:
		return "the leader has no workers (server.workers is 0): evaluations wait for workers of other servers"
	case len(s.Workers.Held) > 0:
		return "the workers of the leader are on hold: " + strings.Join(s.Workers.Held, ", ")
	}
	return ""
}
