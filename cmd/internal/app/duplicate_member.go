package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/gossip"
)

// duplicateCheckTimeout limits the check for another server with the same ID.
const duplicateCheckTimeout = 3 * time.Second

// failOnDuplicateID stops this server if another one runs with its ID. Gossip alone is not
// proof: the other address may be an earlier one of this server, and without gossip keys
// any host can claim an ID. A server that responds under this ID on an authenticated RPC
// connection does run.
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
		return // no such member, or this server itself if its addresses changed
	}
	t.server.env.fail(fmt.Errorf("another server with the ID %s runs at %s: the data directory was copied; "+
		"stop that server if it is the copy; otherwise start this server with an empty data_dir, so that it gets a new ID and replicates the state", t.id, m.Tags.RPC))
}

// statusCounter counts the status requests that a server receives.
type statusCounter struct {
	rpc.Handler
	asked *atomic.Int64
}

func (h statusCounter) Status(ctx context.Context, begin string) (*rpc.Status, error) {
	h.asked.Add(1)
	return h.Handler.Status(ctx, begin)
}

const (
	// forgetAfter is the time after which a failed member that is not in the Raft
	// configuration is removed from the list. Members in the configuration stay listed
	// until they are removed there.
	forgetAfter = time.Hour
	// forgetInterval is the interval of that check.
	forgetInterval = time.Minute
)

// forgetFailedMembers removes failed members until the server stops.
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
	for _, s := range t.server.log.Stats().Servers {
		inRaft[string(s.ID)] = true
	}
	for _, m := range forgettable(t.gossip.Members(), inRaft, now) {
		t.server.env.log.Info("failed member removed", "id", m.ID, "address", m.Addr)
		t.gossip.Forget(m.ID)
	}
}

// forgettable returns the members that have failed for longer than forgetAfter and are not in
// the Raft configuration. It returns nil if that is empty, because the server has no log yet.
func forgettable(members []gossip.Member, inRaft map[string]bool, now time.Time) (list []gossip.Member) {
	if len(inRaft) == 0 {
		return nil
	}
	for _, m := range members {
		if m.Status == gossip.Failed && !inRaft[m.ID] && now.Sub(m.Since) > forgetAfter {
			list = append(list, m)
		}
	}
	return list
}
