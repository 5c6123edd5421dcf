package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A casWrite is a write of an object that supports check-and-set.
type casWrite struct {
	check *uint64 // the index that the object must have; nil: any
	key   string  // idempotency key; "": none
	value int     // distinguishes versions of the object
}

// A casResult is the response to a casWrite.
type casResult struct {
	index  uint64 // of the entry
	next   uint64 // index for the next check; 0: the object is gone
	replay bool
}

// A casEndpoint is an endpoint with check-and-set.
type casEndpoint struct {
	keys    bool                                       // it supports idempotency keys
	prepare func(ctx context.Context, s *Server) error // creates the object, if writes only change it; nil: nothing
	write   func(ctx context.Context, s *Server, w casWrite) (casResult, error)
	current func(*state.Snapshot) uint64 // index for a check; 0: the object does not exist
}

// casEndpoints are all endpoints of a server with check-and-set, by name.
var casEndpoints = map[string]casEndpoint{
	"job": {
		keys: true,
		write: func(ctx context.Context, s *Server, w casWrite) (casResult, error) {
			r, err := s.RegisterJob(ctx, casJob(w.value), endpoint.RegisterOptions{Check: w.check, Key: w.key, ExplicitPriority: true})
			return registeredResult(r, err)
		},
		current: func(snap *state.Snapshot) uint64 { return indexOf(snap.Job(casJob(0).Key())) },
	},
	"job with a plan": {
		keys: true,
		write: func(ctx context.Context, s *Server, w casWrite) (casResult, error) {
			p, err := s.PlanJob(ctx, casJob(w.value), endpoint.PlanOptions{ExplicitPriority: true})
			if err != nil {
				return casResult{}, err
			}
			if w.check == nil {
				w.check = &p.JobModifyIndex
			}
			r, err := s.RegisterJob(ctx, casJob(w.value), endpoint.RegisterOptions{Check: w.check, Key: w.key, Token: p.Token, ExplicitPriority: true})
			return registeredResult(r, err)
		},
		current: func(snap *state.Snapshot) uint64 { return indexOf(snap.Job(casJob(0).Key())) },
	},
	"job that is scaled": {
		keys: true,
		prepare: func(ctx context.Context, s *Server) error {
			_, err := s.RegisterJob(ctx, casJob(0), endpoint.RegisterOptions{})
			return err
		},
		write: func(ctx context.Context, s *Server, w casWrite) (casResult, error) {
			o := endpoint.ChangeOptions{Key: w.key, Request: sha256.Sum256(fmt.Append(nil, w.value))}
			r, err := s.ChangeJob(ctx, casJob(0).Key(), o, func(_ *state.Snapshot, current *model.Job) (*model.Job, error) {
				if w.check != nil && *w.check != current.ModifyIndex {
					return nil, apierror.New(apierror.CodeConflict, "the job has index %d", current.ModifyIndex)
				}
				return casJob(w.value), nil
			})
			return registeredResult(r, err)
		},
		current: func(snap *state.Snapshot) uint64 { return indexOf(snap.Job(casJob(0).Key())) },
	},
	"binding": {
		keys: true,
		write: func(ctx context.Context, s *Server, w casWrite) (casResult, error) {
			b := &model.Binding{ID: "cas-binding", Priority: int32(w.value), Replicas: 1, Resources: model.Resources{"units": 1}}
			r, err := s.RegisterBinding(ctx, b, endpoint.RegisterOptions{Check: w.check, Key: w.key, ExplicitPriority: true, ExplicitPreemption: true})
			return registeredResult(r, err)
		},
		current: func(snap *state.Snapshot) uint64 {
			if b := snap.Binding(model.JobKey{Namespace: "default", ID: "cas-binding"}); b != nil {
				return b.ModifyIndex
			}
			return 0
		},
	},
	"namespace": {
		write: func(ctx context.Context, s *Server, w casWrite) (casResult, error) {
			index, err := s.PutNamespace(ctx, endpoint.NamespaceRequest{Name: "cas", Description: fmt.Sprint(w.value), Check: w.check})
			return casResult{index: index, next: index}, err
		},
		current: namespaceIndex,
	},
	"namespace, also deleted": {
		write: func(ctx context.Context, s *Server, w casWrite) (casResult, error) {
			if w.check == nil || *w.check == 0 || w.value%3 != 0 {
				index, err := s.PutNamespace(ctx, endpoint.NamespaceRequest{Name: "cas", Description: fmt.Sprint(w.value), Check: w.check})
				return casResult{index: index, next: index}, err
			}
			index, err := s.DeleteNamespace(ctx, "cas", w.check)
			if apierror.CodeOf(err) == apierror.CodeNotFound && err != nil { // deleted by another caller
				err = apierror.New(apierror.CodeConflict, "%v", err)
			}
			return casResult{index: index}, err
		},
		current: namespaceIndex,
	},
	"scheduler configuration": {
		write: func(ctx context.Context, s *Server, w casWrite) (casResult, error) {
			index, err := s.UpdateConfig(ctx, w.check, func(c *model.SchedulerConfig) error {
				c.PriorityDelta = new(int32(w.value))
				return nil
			})
			return casResult{index: index, next: index}, err
		},
		current: func(snap *state.Snapshot) uint64 { return snap.Config().ModifyIndex },
	},
}

func casJob(value int) *model.Job {
	return coretest.Job("cas").Ask(1, 1, 0).Change(func(j *model.Job) { j.Meta = map[string]string{"value": fmt.Sprint(value)} }).Obj()
}

func namespaceIndex(snap *state.Snapshot) uint64 {
	if n := snap.Namespace("cas"); n != nil {
		return n.ModifyIndex
	}
	return 0
}

func indexOf(j *model.Job) uint64 {
	if j == nil {
		return 0
	}
	return j.ModifyIndex
}

func registeredResult(r *endpoint.Registered, err error) (casResult, error) {
	if err != nil {
		return casResult{}, err
	}
	return casResult{index: r.Index, next: r.JobModifyIndex, replay: r.Replayed}, nil
}

// A casLog collects the writes that took effect.
type casLog struct {
	mu     sync.Mutex
	writes []casRecord
}

type casRecord struct {
	casResult
	check *uint64
}

func (l *casLog) add(r casResult, check *uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, casRecord{r, check})
}

// lost returns how many checked writes took effect, and how many of them overwrote another
// version than the one that they required. initial is the index of the object before the
// first write.
func (l *casLog) lost(initial uint64) (checked, lost int) {
	slices.SortFunc(l.writes, func(a, b casRecord) int { return cmp.Compare(a.index, b.index) })
	previous := initial
	for _, w := range l.writes {
		if w.check != nil {
			checked++
			if *w.check != previous {
				lost++
			}
		}
		previous = w.next
	}
	return checked, lost
}

// A caller that passes the index of its last response to its next check must not overwrite
// a version of another caller that it has not seen. A repeated request returns the indexes
// of the first response.
func TestCheckAndSet_LosesNoUpdate(t *testing.T) {
	rounds := 40
	if soak.Full() {
		rounds = 1500
	}
	for name, e := range casEndpoints {
		t.Run(name, func(t *testing.T) {
			runServers(t, 1, nil, func(w *harness) {
				s, l := w.leader().server, &casLog{}
				if e.prepare != nil {
					if err := e.prepare(w.ctx, s); err != nil {
						t.Fatal(err)
					}
				}
				initial := e.current(s.Snapshot()) // bootstrap writes a configuration
				var group sync.WaitGroup
				for writer := range 5 {
					group.Go(func() {
						c := casWriter{t: t, endpoint: e, server: s, log: l, id: writer, checked: writer < 2}
						for round := range rounds {
							time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) // otherwise all write in lockstep
							c.write(w.ctx, round)
						}
					})
				}
				group.Wait()
				checked, lost := l.lost(initial)
				if lost > 0 || checked == 0 {
					t.Errorf("%d of %d checked writes overwrote a version that their caller had not seen", lost, checked)
				}
			})
		})
	}
}

// A casWriter writes versions of an object. Values must differ between writers.
type casWriter struct {
	t        *testing.T
	endpoint casEndpoint
	server   *Server
	log      *casLog
	id       int
	checked  bool
	known    *uint64 // index of the last response; nil: read it
}

func (c *casWriter) write(ctx context.Context, round int) {
	w := casWrite{value: 1 + round*8 + c.id}
	if c.endpoint.keys {
		w.key = fmt.Sprintf("%d-%d", c.id, round)
	}
	if c.checked {
		if w.check = c.known; w.check == nil {
			w.check = new(c.endpoint.current(c.server.Snapshot()))
		}
	}
	r, err := c.endpoint.write(ctx, c.server, w)
	switch {
	case apierror.CodeOf(err) == apierror.CodeConflict && err != nil:
		c.known = nil
		return
	case err != nil:
		c.t.Errorf("write %+v: %v", w, err)
		return
	}
	c.log.add(r, w.check)
	c.known = &r.next
	if r.next != r.index && r.next != 0 {
		c.t.Errorf("entry %d changed the object, and its response returns index %d for the next check", r.index, r.next)
	}
	if !c.endpoint.keys || round%3 != 0 {
		return
	}
	again, err := c.endpoint.write(ctx, c.server, w)
	if apierror.CodeOf(err) == apierror.CodeConflict && err != nil { // another plan is another request
		return
	}
	if err != nil || !again.replay || again.index != r.index || again.next != r.next {
		c.t.Errorf("the repeated request returned %+v and %v, the first one %+v", again, err, r)
	}
}

// A write that changes nothing returns the index of the version that it left, and so does
// its repetition after a change by another caller.
func TestRegister_UnchangedReturnsIndexOfItsVersion(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		s := w.leader().server
		for name, e := range casEndpoints {
			if !e.keys || e.prepare != nil || name == "job with a plan" {
				continue
			}
			do := func(value int, key string) casResult {
				r, err := e.write(w.ctx, s, casWrite{key: name + key, value: value})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				return r
			}
			first, unchanged := do(1, "a"), do(1, "b")
			if unchanged.next != first.next || unchanged.index <= first.index {
				t.Errorf("%s: a write without a change returned %+v after %+v", name, unchanged, first)
			}
			do(2, "c")
			if again := do(1, "b"); again.index != unchanged.index || again.next != unchanged.next || !again.replay {
				t.Errorf("%s: the repetition returned %+v, want %+v", name, again, unchanged)
			}
		}
		for what, stop := range map[string]func(context.Context, model.JobKey, endpoint.StopOptions) (*endpoint.Registered, error){
			"cas": s.StopJob, "cas-binding": s.StopBinding,
		} {
			var first *endpoint.Registered
			for range 2 {
				r, err := stop(w.ctx, model.JobKey{Namespace: "default", ID: what}, endpoint.StopOptions{Purge: true, Key: "stop " + what})
				if err != nil || r.JobModifyIndex != 0 || first != nil && (!r.Replayed || r.Index != first.Index) {
					t.Errorf("purge of %s returned %+v and %v after %+v", what, r, err, first)
				}
				first = r
				if what == "cas" { // the name is free for another caller
					w.registerJob(coretest.Job("cas").Ask(1, 1, 0))
				}
			}
		}
	})
}

// A change with a check receives the version that the check requires. Otherwise a server
// that applies entries late would change an older version, and the write of a newer one
// would be lost although its index was checked.
func TestUpdateConfig_ChangesTheVersionOfItsCheck(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		s := w.leader().server
		next := s.Snapshot().Index() + 1
		_, err := s.UpdateConfig(w.ctx, &next, func(c *model.SchedulerConfig) error {
			at, err := s.UpdateConfig(w.ctx, nil, func(c *model.SchedulerConfig) error {
				c.PriorityDelta = new(int32(7))
				return nil
			})
			if err != nil || at != next {
				t.Errorf("the other write returned index %d, want %d: %v", at, next, err)
			}
			c.BrokerPaused = true
			return nil
		})
		if err == nil || apierror.CodeOf(err) != apierror.CodeConflict {
			t.Errorf("a change of an older version returned %v, want a conflict", err)
		}
	})
}
