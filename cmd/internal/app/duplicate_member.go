package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/gossip"
)

// duplicateCheckTimeout bounds how long it may take to find that another server has this one's id.
const duplicateCheckTimeout = 3 * time.Second

// failOnDuplicateID ends this server where another one runs with its id. What gossip says is not
// believed: the server that is said to run was perhaps this one, before it moved, and
// where gossip has no keys anybody may say so. Who answers by that id over a connection
// among servers, with a certificate where there are any, does run.
func (t *poolMember) failOnDuplicateID(ctx context.Context, m gossip.Member) {
	if m.Tags.RPC == "" || m.Tags.RPC == t.rpc.Addr() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, duplicateCheckTimeout)
	defer cancel()
	c := rpc.NewClient(t.rpcConfig, func(string) (string, bool) { return m.Tags.RPC, true })
	defer c.Close()
	before := t.asked.Load()
	if _, err := c.Status(ctx, t.id, ""); err != nil || t.asked.Load() != before {
		return // nobody, or this server itself, which has other addresses now
	}
	t.p.fail(fmt.Errorf("another server with the ID %s runs at %s: the data directory was copied; "+
		"stop that server if it is the copy; otherwise start this server with an empty data_dir, so that it gets a new ID and replicates the state", t.id, m.Tags.RPC))
}

// statusCounter counts how often a server was asked how it stands.
type statusCounter struct {
	rpc.Handler
	asked *atomic.Int64
}

func (h statusCounter) Status(ctx context.Context, begin string) (*rpc.Status, error) {
	h.asked.Add(1)
	return h.Handler.Status(ctx, begin)
}

const (
	// forgetAfter is how long after it failed a member is listed that Raft has no more, or
	// never had: nobody waits for it. What Raft has is listed until it is removed there.
	forgetAfter = time.Hour
	// forgetInterval is how often it is looked for such members.
	forgetInterval = time.Minute
)

// forgetFailedMembers forgets failed members until the server stops.
func (t *poolMember) forgetFailedMembers(stop <-chan struct{}) {
	tick := time.NewTicker(forgetInterval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			t.forgetFailedOnce(time.Now())
		}
	}
}

func (t *poolMember) forgetFailedOnce(now time.Time) {
	inRaft := map[string]bool{}
	for _, s := range t.p.server.log.Stats().Servers {
		inRaft[string(s.ID)] = true
	}
	if len(inRaft) == 0 {
		return // it has no log yet, and cannot tell
	}
	for _, m := range t.gossip.Members() {
		if m.Status == gossip.Failed && !inRaft[m.ID] && now.Sub(m.Since) > forgetAfter {
			t.p.log.Info("failed member removed", "id", m.ID, "address", m.Addr)
			t.gossip.Forget(m.ID)
		}
	}
}
