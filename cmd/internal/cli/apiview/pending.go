package apiview

import (
	"context"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// WarnPaused prints a warning if the broker is paused. Commands whose effect depends on
// an evaluation call it after the write, if they do not wait for the evaluation.
func WarnPaused(ctx context.Context, c *cmdutil.Connection) {
	if s, err := c.Client.Operator().BrokerStatus(ctx); err == nil && s.Paused {
		c.Env.Warn(pausedReason)
	}
}

const (
	pausedReason = "the broker is paused: nothing is placed or stopped until `cede operator broker resume`"
	noLeader     = "no leader: nothing is placed until one is elected; `cede server members` lists the servers"
)

// PendingReason returns why a due evaluation stays pending; "" if workers are processing
// it or the reason is unknown. isLasting reports that the reason remains until an
// operator acts; the others may disappear within a second.
func PendingReason(ctx context.Context, c *cmdutil.Connection, meta *client.QueryMeta) (why string, isLasting bool) {
	if !meta.KnownLeader {
		return noLeader, false
	}
	s, err := c.Client.Operator().BrokerStatus(ctx)
	switch {
	case client.HasCode(err, client.CodeNoLeader):
		return noLeader, false
	case err != nil:
		return "", false // the status covers all namespaces, but a token may be limited to one
	case s.Paused:
		return pausedReason, true
	case s.Workers == nil:
		return "", false
	case s.Workers.Wanted == 0: // other servers may have workers
		return "the leader has no workers (server.workers is 0): evaluations wait for workers of other servers", false
	}
	return "", false
}
