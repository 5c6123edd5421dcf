package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// StormConfig configures a storm of evaluations.
type StormConfig struct {
	Nodes, Jobs int
	Seed        uint64
	// Shedding cancels superseded evaluations. Coalescing combines nodes that fail
	// together into one log entry with one evaluation per job; the nodes of the first
	// storm register without it, because there would be no storm otherwise.
	Shedding, Coalescing bool
}

// StormResult is the result of Storm.
type StormResult struct {
	Nodes      int  `json:"nodes"`
	Jobs       int  `json:"jobs"`
	Shedding   bool `json:"shedding"`
	Coalescing bool `json:"coalescing"`
	// Register is the creation of the first storm: nodes times jobs evaluations are
	// written while the workers are paused.
	Register Phase `json:"register"`
	// Backlog is the first storm, from the moment at which workers resume.
	Backlog Phase `json:"backlog"`
	// Start is the phase in which nodes receive their allocations and report that
	// they run.
	Start Phase `json:"start"`
	// Silence is the second storm: all nodes stop sending heartbeats. Its duration
	// starts at the end of the last lease.
	Silence Phase `json:"silence"`
}

// Phase holds the figures of one phase.
type Phase struct {
	Seconds     float64     `json:"seconds"`
	Evaluations Evaluations `json:"evaluations"`
	Entries     uint64      `json:"entries"` // of the log
}

// Evaluations counts evaluations by result. Blocked ones were created by processed
// ones.
type Evaluations struct {
	Created   int `json:"created"`
	Processed int `json:"processed"`
	Cancelled int `json:"cancelled"`
}

// storm holds the state of one Storm.
type storm struct {
	*Target
	c      StormConfig
	before client.SchedulerConfiguration
	nodes  *machines
	r      *StormResult
}

// Storm runs two storms: a backlog of nodes times jobs evaluations, and the loss of
// all nodes.
func Storm(ctx context.Context, t *Target, c StormConfig) (_ *StormResult, err error) {
	s := &storm{Target: t, c: c, r: &StormResult{Nodes: c.Nodes, Jobs: c.Jobs, Shedding: c.Shedding, Coalescing: c.Coalescing}}
	was, _, err := t.c.Scheduler().Get(ctx, nil)
	if err != nil {
		return nil, err
	}
	s.before = *was
	defer func() {
		if s.nodes != nil {
			s.nodes.close()
		}
		err = errors.Join(err, s.restore(ctx))
	}()
	for _, step := range []func(context.Context) error{s.waitKey, s.register, s.backlog, s.start, s.silence} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s.r, nil
}

// waitKey waits until a new server has written its key for certificates, which it does soon
// after it is ready: the entry would count as one of the first phase. It waits 5 s at most, as
// an older server writes none.
func (s *storm) waitKey(ctx context.Context) error {
	done := func() bool {
		keys, _, err := s.Target.c.Allocations().DecisionKeys(ctx, nil)
		return err != nil || len(keys) > 0 // an older server has no such route
	}
	for n := 0; n < 50 && !done(); n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// set configures how evaluations are processed.
func (s *storm) set(ctx context.Context, paused, coalescing bool) error {
	return s.configure(ctx, func(c *client.SchedulerConfiguration) {
		c.PauseEvalBroker, c.Coalescing, c.Shedding = paused, &coalescing, &s.c.Shedding
	})
}

// restore resets a server that keeps running to its previous configuration.
func (s *storm) restore(ctx context.Context) error {
	if s.process != nil || s.pool != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	return s.configure(ctx, func(c *client.SchedulerConfiguration) {
		c.PauseEvalBroker, c.Coalescing, c.Shedding = s.before.PauseEvalBroker, orOn(s.before.Coalescing), orOn(s.before.Shedding)
	})
}

// orOn returns the setting, or true if it is absent. It is set explicitly, because an
// absent field of a change leaves the current value.
func orOn(set *bool) *bool {
	on := set == nil || *set
	return &on
}

// register creates the backlog: one log entry per node, with one evaluation per job.
func (s *storm) register(ctx context.Context) (err error) {
	if err := s.set(ctx, true, false); err != nil {
		return err
	}
	from, err := s.index(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	for i := range s.c.Jobs {
		j := job(s.id("job", i), "system", 50+i%50, 0)
		if _, err := s.Target.c.Jobs().Register(ctx, j, nil); err != nil {
			return err
		}
	}
	s.nodes, err = s.connect(ctx, s.c.Nodes, s.c.Seed, never, map[string]int64{"cpu": 100 + 20*int64(s.c.Jobs), "memory": 100 + 20*int64(s.c.Jobs)})
	if err != nil {
		return err
	}
	if err := s.nodes.registered(ctx); err != nil {
		return err
	}
	want := s.c.Jobs * (s.c.Nodes + 1)
	err = s.until(ctx, "evaluations pile up", want, 20*time.Millisecond, func() (int, error) {
		b, err := s.Target.c.Operator().BrokerStatus(ctx)
		if err != nil {
			return 0, err
		}
		return busy(b), nil
	})
	if err != nil {
		return err
	}
	s.r.Register.Seconds = time.Since(began).Seconds()
	return s.count(ctx, &s.r.Register, from)
}

// backlog resumes the workers and waits until the evaluations are processed.
func (s *storm) backlog(ctx context.Context) error {
	from, err := s.index(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.set(ctx, false, false); err != nil {
		return err
	}
	end, err := s.quiet(ctx, "evaluations that piled up", true)
	if err != nil {
		return err
	}
	s.r.Backlog.Seconds = end.at.Sub(began).Seconds()
	if err := s.count(ctx, &s.r.Backlog, from); err != nil {
		return err
	}
	return s.placed(ctx)
}

// placed returns an error if the number of placed instances differs from the
// requested one.
func (s *storm) placed(ctx context.Context) error {
	for i := range s.c.Jobs {
		sum, _, err := s.Target.c.Jobs().Summary(ctx, s.id("job", i), nil)
		if err != nil {
			return err
		}
		if g := sum.Summary["g"]; g.Starting+g.Running < s.c.Nodes {
			return fmt.Errorf("job %s is on %d of %d nodes: %+v", sum.JobID, g.Starting+g.Running, s.c.Nodes, g)
		}
	}
	return nil
}

// start lets the nodes start their allocations and report them.
func (s *storm) start(ctx context.Context) error {
	if err := s.set(ctx, false, s.c.Coalescing); err != nil {
		return err
	}
	from, err := s.index(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	s.nodes.ask()
	want := s.c.Nodes * s.c.Jobs
	err = s.until(ctx, "nodes start their allocations", want, 20*time.Millisecond, func() (int, error) {
		return int(s.nodes.fleet.Stats().Started), nil
	})
	if err != nil {
		return err
	}
	end, err := s.quiet(ctx, "nodes report", true)
	if err != nil {
		return err
	}
	s.r.Start.Seconds = end.at.Sub(began).Seconds()
	return s.count(ctx, &s.r.Start, from)
}

// silence stops the heartbeats of all nodes.
func (s *storm) silence(ctx context.Context) error {
	from, err := s.index(ctx)
	if err != nil {
		return err
	}
	s.nodes.fleet.SetSilent(s.c.Nodes)
	began := time.Now()
	var last time.Time
	var id string
	for {
		at, who := s.nodes.leases.end() // a request in flight may still have been received
		last, id = at.Add(s.grace), who
		left := time.Until(last)
		if left <= 0 {
			break
		}
		s.show("seconds until the last lease ends", int(time.Since(began).Seconds()), int(last.Sub(began).Seconds()))
		if err := sleep(ctx, min(left, 250*time.Millisecond)); err != nil {
			return err
		}
	}
	err = s.until(ctx, "the last node is taken for down", 1, pollEvery, func() (int, error) {
		n, _, err := s.Target.c.Nodes().Get(ctx, id, nil)
		if err != nil || n.Status != "down" {
			return 0, err
		}
		return 1, nil
	})
	if err != nil {
		return err
	}
	end, err := s.allDown(ctx)
	if err != nil {
		return err
	}
	s.r.Silence.Seconds = end.at.Sub(last).Seconds()
	return s.count(ctx, &s.r.Silence, from)
}

// allDown waits until the server is idle and has marked every node as down.
func (s *storm) allDown(ctx context.Context) (moment, error) {
	for {
		end, err := s.quiet(ctx, "evaluations of the silent nodes", true)
		if err != nil {
			return end, err
		}
		nodes, _, err := s.Target.c.Nodes().List(ctx, &client.QueryOptions{Prefix: s.run})
		if err != nil {
			return end, err
		}
		up := 0
		for _, n := range nodes {
			if n.Status != "down" {
				up++
			}
		}
		if up == 0 && len(nodes) == s.c.Nodes {
			return end, nil
		}
		s.show("nodes are taken for down", len(nodes)-up, s.c.Nodes)
	}
}

// pageSize is the number of evaluations per page.
const pageSize = 10_000

// count counts evaluations since an index. The phase has ended, so that the figures
// do not change meanwhile.
func (s *storm) count(ctx context.Context, p *Phase, from uint64) error {
	to, err := s.index(ctx)
	if err != nil {
		return err
	}
	p.Entries = to - from
	q := &client.QueryOptions{PerPage: pageSize}
	return client.AllPages(ctx, q, func(ctx context.Context, q *client.QueryOptions) (*client.QueryMeta, error) {
		list, meta, err := s.Target.c.Evaluations().List(ctx, q)
		for _, e := range list {
			p.Evaluations.add(e, from)
		}
		return meta, err
	})
}

func (n *Evaluations) add(e *client.Evaluation, from uint64) {
	if e.CreateIndex > from {
		n.Created++
	}
	if e.ModifyIndex <= from {
		return
	}
	switch e.Status {
	case "complete", "failed":
		n.Processed++
	case "cancelled":
		n.Cancelled++
	}
}
