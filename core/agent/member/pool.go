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

// Servers is what an agent asks of the servers of a pool: client.MemberAgent.
type Servers interface {
	Register(ctx context.Context, id string, req *client.ClusterRegisterRequest) (*client.NodeLease, error)
	Heartbeat(ctx context.Context, id, secret string, req *client.ClusterHeartbeatRequest) (*client.NodeLease, error)
	Assignments(ctx context.Context, id, secret string, q *client.QueryOptions) ([]*client.Assignment, *client.QueryMeta, error)
	Update(ctx context.Context, id, secret string, updates []client.AssignmentUpdate) (uint64, error)
}

var _ Servers = client.MemberAgent{}

// Pool is servers that bindings are registered with. Where several share the
// cluster each has a name, which the agent alone gives and the others get to see.
type Pool struct {
	Name    string
	Servers Servers
}

// pool is the agent's side of one pool.
type pool struct {
	Pool
	a      *Agent
	log    *slog.Logger
	notify chan struct{} // capacity 1: what is told with a heartbeat is news

	mu     sync.Mutex
	wanted []*client.Assignment // as the servers last said
	heard  bool                 // they have said so at all
	spoke  time.Time            // when they last said anything
}

// run keeps in touch with the servers until ctx ends.
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

// renewLease registers the cluster, again whenever it has become another one, and
// renews its lease. registered is closed when it is known for the first time, with
// what is kept for others.
func (p *pool) renewLease(ctx context.Context, registered chan struct{}) {
	var known *ClusterResources
	for told := false; ctx.Err() == nil; {
		room, err := p.a.resources(ctx)
		var answer *client.NodeLease
		if err == nil {
			answer, err = p.reportState(ctx, known, room)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if client.IsNotFound(err) {
				known = nil
			}
			p.log.WarnContext(ctx, "the lease was not renewed; trying again", "err", err)
			sleep(ctx, p.a.c.Retry)
		default:
			known = room
			p.recordContact()
			if !told {
				told = true
				close(registered)
				p.log.InfoContext(ctx, "cluster registered", "ttl", answer.HeartbeatTTL)
			}
			p.pause(ctx, beatAfter(answer.HeartbeatTTL))
		}
	}
}

// reportState says what there is of the cluster; known is what was said before, nil:
// nothing was.
func (p *pool) reportState(ctx context.Context, known, room *ClusterResources) (answer *client.NodeLease, err error) {
	a := p.a
	if known == nil || !maps.Equal(known.Capacity, room.Capacity) {
		answer, err = p.Servers.Register(ctx, a.c.Cluster, &client.ClusterRegisterRequest{
			Capacity: room.Capacity, Attributes: a.c.Attributes, Reported: room.Usable, Secret: a.secret,
		})
		if err != nil || a.leases == nil {
			return answer, err
		}
	}
	report := &client.ClusterHeartbeatRequest{Reported: room.Usable}
	if a.leases != nil {
		report.Leases = a.leases.others(time.Now().UnixNano(), p.Name)
	}
	return p.Servers.Heartbeat(ctx, a.c.Cluster, a.secret, report)
}

// pause waits until it is time for another heartbeat, or there is news.
func (p *pool) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-p.notify:
	}
}

// wake has the servers told what is news.
func (p *pool) wake() {
	select {
	case p.notify <- struct{}{}:
	default:
	}
}

// reportEvery bounds how old what servers know of the room is, where leases are
// long.
const reportEvery = 5 * time.Second

// beatAfter is when to renew a lease: soon enough that one lost request does not
// lose it, and not all clusters at once.
func beatAfter(ttl time.Duration) time.Duration {
	half := min(ttl/2, reportEvery)
	return half - rand.N(half/5+1)
}

// watch asks for assignments.
func (p *pool) watch(ctx context.Context) {
	index := uint64(0)
	for ctx.Err() == nil {
		q := &client.QueryOptions{Index: index, Namespace: "*"}
		if index > 0 {
			q.Wait = p.a.c.Wait
		} else {
			q.Consistent = true // what a server that is behind does not list would be stopped
		}
		limited, cancel := context.WithTimeout(ctx, p.a.c.Wait+requestTimeout)
		list, meta, err := p.Servers.Assignments(limited, p.a.c.Cluster, p.a.secret, q)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.log.WarnContext(ctx, "assignments are not known; trying again", "err", err)
			sleep(ctx, p.a.c.Retry)
		case meta.LastIndex < index:
			// A server that is behind, or a snapshot that was put back: what it says is
			// taken only once it was asked for without regard to what we knew.
			index = 0
			sleep(ctx, p.a.c.Retry)
		default:
			index = max(meta.LastIndex, 1)
			p.storeAssignments(list)
		}
	}
}

// requestTimeout is how long a request that waits for nothing may take.
const requestTimeout = 30 * time.Second

func (p *pool) storeAssignments(list []*client.Assignment) {
	p.mu.Lock()
	p.wanted, p.heard = list, true
	p.mu.Unlock()
	select {
	case p.a.changed <- struct{}{}:
	default:
	}
}

func (p *pool) recordContact() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoke = time.Now()
}

// desired is what a pool wants, as far as it has said so.
type desired struct {
	pool   *pool
	wanted []*client.Assignment
	silent bool // it has said nothing for so long that no room is kept for what it claims
}

// desiredState is what the pools that were heard want, and whether all were.
func (a *Agent) desiredState() (list []desired, all bool) {
	all = true
	for _, p := range a.pools {
		p.mu.Lock()
		if p.heard {
			list = append(list, desired{p, p.wanted, time.Since(p.spoke) > a.c.Keep})
		} else {
			all = false
		}
		p.mu.Unlock()
	}
	return list, all
}

func (w *desired) key(id string) lease.Key { return lease.Key{Pool: w.pool.Name, ID: id} }
