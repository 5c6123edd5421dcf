package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/agent"
	"github.com/cede-scheduler/cede/sdk/client"
)

// FailoverConfig configures a pool of three servers whose leader is repeatedly killed
// and restarted.
type FailoverConfig struct {
	Rounds   int
	Writers  int           // clients that register jobs meanwhile
	Nodes    int           // simulated, that run them
	Election time.Duration // election timeout without contact to the leader

	Program string // path of this program
	Dir     string // parent of the temporary directory; empty: that of the system
	// Show reports progress; it is called often.
	Show func(what string, done, total int)
}

// FailoverResult holds the times after which a pool continued once its leader was killed.
// Times are in milliseconds.
type FailoverResult struct {
	Rounds  int `json:"rounds"`
	Writers int `json:"writers"`
	// Noticed is the time until a remaining server starts an election, Elected until
	// one wins it, and Ready until it has applied the log and accepts writes.
	Noticed Latency `json:"noticed"`
	Elected Latency `json:"elected"`
	Ready   Latency `json:"ready"`
	// Write is the time to the first committed write of callers that constantly try
	// both remaining servers. Client is the same for ordinary clients, of which each
	// server has Clients.
	Write   Latency `json:"firstWrite"`
	Client  Latency `json:"firstWriteOfAClient"`
	Clients Latency `json:"firstWriteOfEveryClient"`

	Acknowledged int64  `json:"acknowledged"` // writes of those clients
	Failed       int64  `json:"failed"`       // rejected writes
	Jobs         int    `json:"jobs"`
	StateHash    string `json:"stateHash"` // equal on every server at the end
}

// Log messages of a server that mark the end of a step.
const (
	saidNoticed = `"heartbeat timeout reached, starting election"`
	saidElected = `"election won"`
	saidReady   = `"leadership established"`
)

// failover holds the state of one Failover.
type failover struct {
	FailoverConfig
	p       *processes
	r       *FailoverResult
	writers []*writer

	noticed, elected, ready, write, client, clients latencies
}

// writer is an ordinary client that updates its jobs one after the other.
type writer struct {
	c      *client.Client
	name   string
	acked  map[string]int // by job: last acknowledged value
	failed atomic.Int64
	count  atomic.Int64
	last   atomic.Int64 // time of the first acknowledged write since the reset, UnixNano; 0: none yet
}

// jobsEach is the number of jobs that a writer changes in turn.
const jobsEach = 20

// run writes until ctx ends.
func (w *writer) run(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%s-%d", w.name, n%jobsEach)
		j := job(id, "service", 50, 1)
		j.Meta = map[string]string{"n": strconv.Itoa(n)}
		if _, err := w.c.Jobs().Register(ctx, j, nil); err != nil {
			if ctx.Err() == nil {
				w.failed.Add(1)
			}
			continue
		}
		w.acked[id] = n
		w.count.Add(1)
		w.last.CompareAndSwap(0, time.Now().UnixNano())
		select { // a moderate rate, so that the log is not the bottleneck
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// Failover repeatedly kills the leader under load. It returns an error if an
// acknowledged write is lost, or if the servers differ at the end.
func Failover(ctx context.Context, c FailoverConfig) (result *FailoverResult, err error) {
	p, err := newProcesses(c.Program, c.Dir, 3)
	if err != nil {
		return nil, err
	}
	p.server = fmt.Sprintf("raft: {heartbeat: %v, election: %v}", c.Election, c.Election)
	defer func() { err = errors.Join(err, p.close()) }()
	f := &failover{FailoverConfig: c, p: p, r: &FailoverResult{Rounds: c.Rounds, Writers: c.Writers}}
	for _, s := range p.list {
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	if err := p.await(ctx, "no server leads", 20*time.Millisecond, func() bool { return p.leader(ctx) != nil }); err != nil {
		return nil, err
	}
	nodes, err := f.nodes(ctx)
	if err != nil {
		return nil, err
	}
	defer nodes()
	if err := f.rounds(ctx); err != nil {
		return nil, err
	}
	if err := f.check(ctx); err != nil {
		return nil, err
	}
	for to, l := range map[*Latency]*latencies{
		&f.r.Noticed: &f.noticed, &f.r.Elected: &f.elected, &f.r.Ready: &f.ready,
		&f.r.Write: &f.write, &f.r.Client: &f.client, &f.r.Clients: &f.clients,
	} {
		*to = l.summary()
	}
	return f.r, nil
}

// nodes connects simulated nodes and returns the function that stops them.
func (f *failover) nodes(ctx context.Context) (end func(), err error) {
	fleet, err := agent.NewFleet(agent.FleetConfig{
		Servers: agent.Remote(f.p.c.NodeAgent()), Nodes: f.Nodes, Workers: 4, Poll: 500 * time.Millisecond, Retry: 100 * time.Millisecond,
		Node: func(n int) agent.Node {
			return agent.Node{
				Name: fmt.Sprint("node-", n), Datacenter: "dc1", Class: "sim", Attributes: map[string]string{"driver.sim": "1"},
				Capacity: map[string]int64{"cpu": 1_000_000, "memory": 1_000_000, "disk": 1_000_000},
			}
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = fleet.Run(ctx) // returns when its context ends
	}()
	end = func() {
		cancel()
		<-done
	}
	if err := fleet.WaitRegistered(ctx); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// rounds kills and restarts leaders under load.
func (f *failover) rounds(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer func() {
		cancel()
		all.Wait()
	}()
	for i := range f.Writers {
		w := &writer{c: f.p.c, name: fmt.Sprint("w", i), acked: map[string]int{}}
		f.writers = append(f.writers, w)
		all.Go(func() { w.run(ctx) })
	}
	for i := range f.Rounds {
		f.Show("the leader is killed", i, f.Rounds)
		if err := f.round(ctx, i); err != nil {
			return fmt.Errorf("round %d of %d: %w", i+1, f.Rounds, err)
		}
	}
	return nil
}

// round kills the leader under load, and restarts it.
func (f *failover) round(ctx context.Context, n int) error {
	var lead *serverProcess
	if err := f.p.await(ctx, "no server leads", 20*time.Millisecond, func() bool { lead = f.p.leader(ctx); return lead != nil }); err != nil {
		return err
	}
	if err := f.worked(ctx); err != nil {
		return err
	}
	for _, s := range f.p.list {
		s.output.listenFor(saidNoticed, saidElected, saidReady)
	}
	for _, w := range f.writers {
		w.last.Store(0)
	}
	killed := time.Now()
	lead.kill()
	for _, w := range f.writers { // writes that the killed server acknowledged do not count
		w.last.Store(0)
	}
	if err := f.firstWrite(ctx, lead, n, killed); err != nil {
		return err
	}
	if err := f.everyWriter(ctx, killed); err != nil {
		return err
	}
	for what, to := range map[string]*latencies{saidNoticed: &f.noticed, saidElected: &f.elected, saidReady: &f.ready} {
		if err := f.p.await(ctx, "no server logs "+what, 5*time.Millisecond, func() bool { return !f.first(what).IsZero() }); err != nil {
			return err
		}
		to.add(f.first(what).Sub(killed))
	}
	if err := lead.start(); err != nil {
		return err
	}
	return f.p.await(ctx, lead.name+" does not come back", 20*time.Millisecond, func() bool {
		back, err := lead.c.Operator().RaftStatus(ctx)
		now := f.p.leader(ctx)
		if err != nil || now == nil || now == lead {
			return false
		}
		st, err := now.c.Operator().RaftStatus(ctx)
		return err == nil && back.State == "Follower" && back.AppliedIndex+50 > st.AppliedIndex
	})
}

// worked waits until every writer has an acknowledged write.
func (f *failover) worked(ctx context.Context) error {
	before := make([]int64, len(f.writers))
	for i, w := range f.writers {
		before[i] = w.count.Load()
	}
	return f.p.await(ctx, "clients do not get on", 10*time.Millisecond, func() bool {
		for i, w := range f.writers {
			if w.count.Load() < before[i]+20 {
				return false
			}
		}
		return true
	})
}

// firstWrite repeats a write on every remaining server until one succeeds.
func (f *failover) firstWrite(ctx context.Context, victim *serverProcess, n int, killed time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, poolPatience)
	defer cancel()
	var once sync.Once
	var all sync.WaitGroup
	for _, s := range f.p.list {
		if s == victim {
			continue
		}
		all.Go(func() {
			for ctx.Err() == nil {
				limited, done := context.WithTimeout(ctx, time.Second)
				_, err := s.c.Jobs().Register(limited, job(fmt.Sprintf("probe-%s-%d", s.name, n%jobsEach), "service", 50, 1), nil)
				done()
				if err == nil {
					once.Do(func() { f.write.since(killed) })
					cancel()
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("no write is committed any more")
	}
	return nil
}

// everyWriter waits until each client has written again, and records the time.
func (f *failover) everyWriter(ctx context.Context, killed time.Time) error {
	err := f.p.await(ctx, "a client does not get on", 5*time.Millisecond, func() bool {
		return !slices.ContainsFunc(f.writers, func(w *writer) bool { return w.last.Load() == 0 })
	})
	if err != nil {
		return err
	}
	first := time.Duration(0)
	for _, w := range f.writers {
		after := time.Unix(0, w.last.Load()).Sub(killed)
		f.clients.add(after)
		if first == 0 || after < first {
			first = after
		}
	}
	f.client.add(first)
	return nil
}

// first returns the time at which a server first logged a message, or the zero time
// if none did.
func (f *failover) first(what string) (at time.Time) {
	for _, s := range f.p.list {
		if heard := s.output.heard(what); !heard.IsZero() && (at.IsZero() || heard.Before(at)) {
			at = heard
		}
	}
	return at
}

// check returns an error if an acknowledged write is missing, an evaluation has not
// ended, or the servers differ in state.
func (f *failover) check(ctx context.Context) error {
	f.Show("checking acknowledged writes", f.Rounds, f.Rounds)
	for _, w := range f.writers {
		f.r.Acknowledged += w.count.Load()
		f.r.Failed += w.failed.Load()
		for id, n := range w.acked {
			j, _, err := f.p.c.Jobs().Get(ctx, id, &client.QueryOptions{Consistent: true})
			if err != nil {
				return fmt.Errorf("job %s was acknowledged: %w", id, err)
			}
			if there, err := strconv.Atoi(j.Meta["n"]); err != nil || there < n {
				return fmt.Errorf("job %s is as write %s left it, and write %d was acknowledged", id, j.Meta["n"], n)
			}
			f.r.Jobs++
		}
	}
	err := f.p.await(ctx, "evaluations do not end", 100*time.Millisecond, func() bool {
		st, err := f.p.c.Operator().BrokerStatus(ctx)
		return err == nil && st.Ready+st.Unacked+st.Pending+st.Delayed+st.Backoff+st.Cancelable == 0
	})
	if err != nil {
		return err
	}
	return f.p.await(ctx, "servers do not come to the same state", 100*time.Millisecond, func() bool {
		at := map[string]bool{}
		for _, s := range f.p.list {
			st, err := s.c.Operator().RaftStatusWithHash(ctx)
			if err != nil {
				return false
			}
			f.r.StateHash = st.StateHash
			at[fmt.Sprint(st.StateIndex, " ", st.StateHash)] = true
		}
		return len(at) == 1
	})
}
