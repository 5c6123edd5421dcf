package member

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/lease"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Servers are the requests that an agent sends to a pool. client.MemberAgent implements it.
type Servers interface {
	Register(ctx context.Context, id string, req *client.ClusterRegisterRequest) (*client.NodeLease, error)
	Heartbeat(ctx context.Context, id, secret string, req *client.ClusterHeartbeatRequest) (*client.NodeLease, error)
	Assignments(ctx context.Context, id, secret string, q *client.QueryOptions) ([]*client.Assignment, *client.QueryMeta, error)
	Update(ctx context.Context, id, secret string, updates []client.AssignmentUpdate) (uint64, error)
}

var _ Servers = client.MemberAgent{}

// A Pool is a set of servers that hold bindings. If several pools share the cluster,
// each has a name, which is configured in the agent and reported to the other pools.
type Pool struct {
	Name    string
	Servers Servers
}

// A pool is the connection to one pool.
type pool struct {
	Pool
	a      *Agent
	log    *slog.Logger
	notify chan struct{} // capacity 1: a heartbeat is due because its content changed

	mu          sync.Mutex
	assignments []*client.Assignment // last list received
	received    bool                 // a list has been received
	lastContact time.Time            // time of the last response
}

// run exchanges state with the servers until ctx is done.
func (p *pool) run(ctx context.Context) {
	var loops sync.WaitGroup
	registered := make(chan struct{})
	loops.Go(func() { p.renewLease(ctx, registered) })
	loops.Go(func() {
		select {
		case <-registered:
			p.watch(ctx)
		case <-ctx.Done():
		}
	})
	loops.Wait()
}

// renewLease registers the cluster, also after it has changed its identity, and
// renews its lease. It closes registered when the cluster is registered for the first
// time and its response has been processed.
func (p *pool) renewLease(ctx context.Context, registered chan struct{}) {
	var last *ClusterResources
	for registeredOnce := false; ctx.Err() == nil; {
		resources, err := p.a.resources(ctx)
		var answer *client.NodeLease
		if err == nil {
			answer, err = p.reportState(ctx, last, resources)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if client.IsNotFound(err) {
				last = nil
			}
			p.log.WarnContext(ctx, "failed to renew lease; retrying", "err", err)
			sleep(ctx, p.a.c.Retry)
		default:
			last = resources
			p.recordContact()
			if !registeredOnce {
				registeredOnce = true
				close(registered)
				p.log.InfoContext(ctx, "cluster registered", "ttl", answer.HeartbeatTTL)
			}
			p.pause(ctx, beatAfter(answer.HeartbeatTTL))
		}
	}
}

// reportState reports the resources of the cluster. last is the previous report, or nil
// if there was none.
func (p *pool) reportState(ctx context.Context, last, resources *ClusterResources) (answer *client.NodeLease, err error) {
	a := p.a
	if last == nil || !maps.Equal(last.Capacity, resources.Capacity) {
		answer, err = p.Servers.Register(ctx, a.c.Cluster, &client.ClusterRegisterRequest{
			Capacity: resources.Capacity, Attributes: a.c.Attributes, Reported: resources.Usable, Secret: a.secret,
		})
		if err != nil || a.leases == nil {
			return answer, err
		}
	}
	report := &client.ClusterHeartbeatRequest{Reported: resources.Usable}
	if a.leases != nil {
		report.Leases = a.leases.others(time.Now().UnixNano(), p.Name)
	}
	return p.Servers.Heartbeat(ctx, a.c.Cluster, a.secret, report)
}

// pause waits until the next heartbeat is due or wake is called.
func (p *pool) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-p.notify:
	}
}

// wake triggers a heartbeat.
func (p *pool) wake() {
	select {
	case p.notify <- struct{}{}:
	default:
	}
}

// reportEvery is the maximum age of reported resources if the lease is longer.
const reportEvery = 5 * time.Second

// beatAfter returns when to renew a lease: early enough that one lost request does
// not expire it, with jitter between clusters.
func beatAfter(ttl time.Duration) time.Duration {
	half := min(ttl/2, reportEvery)
	return half - rand.N(half/5+1)
}

// watch runs blocking queries for assignments.
func (p *pool) watch(ctx context.Context) {
	index := uint64(0)
	for ctx.Err() == nil {
		q := &client.QueryOptions{Index: index, Namespace: "*"}
		if index > 0 {
			q.Wait = p.a.c.Wait
		} else {
			q.Consistent = true // a stale list would stop workloads that it lacks
		}
		limited, cancel := context.WithTimeout(ctx, p.a.c.Wait+requestTimeout)
		list, meta, err := p.Servers.Assignments(limited, p.a.c.Cluster, p.a.secret, q)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.log.WarnContext(ctx, "failed to fetch assignments; retrying", "err", err)
			sleep(ctx, p.a.c.Retry)
		case meta.LastIndex < index:
			// The index went backwards: the server is behind, or a snapshot was
			// restored. Its list is used only if a query without an index confirms
			// it.
			index = 0
			sleep(ctx, p.a.c.Retry)
		default:
			index = max(meta.LastIndex, 1)
			p.storeAssignments(list)
		}
	}
}

// requestTimeout bounds requests that do not block.
const requestTimeout = 30 * time.Second

func (p *pool) storeAssignments(list []*client.Assignment) {
	p.mu.Lock()
	p.assignments, p.received = list, true
	p.mu.Unlock()
	select {
	case p.a.changed <- struct{}{}:
	default:
	}
}

func (p *pool) recordContact() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastContact = time.Now()
}

// desired is the last desired state that was received from one pool.
type desired struct {
	pool        *pool
	assignments []*client.Assignment
	silent      bool // the last contact is so long ago that its claims hold no capacity
}

// desiredState returns the desired state of the pools that have sent one, and reports
// whether all have.
func (a *Agent) desiredState() (list []desired, all bool) {
	all = true
	for _, p := range a.pools {
		p.mu.Lock()
		if p.received {
			list = append(list, desired{p, p.assignments, time.Since(p.lastContact) > a.c.Keep})
		} else {
			all = false
		}
		p.mu.Unlock()
	}
	return list, all
}

func (w *desired) key(id string) lease.Key { return lease.Key{Pool: w.pool.Name, ID: id} }
