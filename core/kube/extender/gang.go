package extender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"time"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// A Gang is a pod group whose pods wait for nodes together.
type Gang struct {
	Namespace, Name, UID string
	Priority             int32
	// Pods are the pods without a node, in the order in which they are scheduled.
	Pods []*kube.Pod
	// AtLeast is the number of Pods that must find a node for any of them to get one.
	AtLeast int
}

// pod returns the gang as a preemptor, with the name and the UID of the pod group. It
// requests nothing.
func (g *Gang) pod() *kube.Pod {
	return &kube.Pod{Metadata: kube.Metadata{Namespace: g.Namespace, Name: g.Name, UID: g.UID}, Spec: kube.PodSpec{Priority: &g.Priority}}
}

// A GangChoice holds the victims for a gang.
type GangChoice struct {
	// Victims are the UIDs of the pods to evict, and of those that earlier answers named. If
	// there are none, the policy allows no eviction that helps.
	Victims []string
	// Placed is the number of pods of the gang, the first ones, that then find nodes.
	Placed int
}

// Gangs choose victims for gangs by the policy of an extender. They are safe for concurrent
// use.
type Gangs struct{ extender *Extender }

// GangsOf returns the Gangs of an extender.
func GangsOf(e *Extender) Gangs { return Gangs{e} }

// Choose returns the victims by which all pods of a gang find nodes, or else as many
// of the first ones as possible, but not fewer than AtLeast. The caller reports the
// victims that it evicts to Record. It returns an error if the policy makes no decision.
func (s Gangs) Choose(ctx context.Context, g *Gang) (*GangChoice, error) {
	e := s.extender
	from := e.cfg.Clock.Now()
	choice, end := runBounded(ctx, e, func() (*GangChoice, outcome) { return s.decide(g) })
	duration := e.cfg.Clock.Now().Sub(from)
	e.metrics.preempted(end, duration)
	if end.result != resultAnswered && e.cfg.Decided != nil {
		e.cfg.Decided(unanswered(&kube.ExtenderPreemptionArgs{Pod: g.pod()}, from, nil, &end))
	}
	logGang(ctx, e.cfg.Logger, g, choice, end, duration)
	if end.failed() {
		return nil, end.err
	}
	return choice, nil
}

// Record records the pods of the policy's choice that are evicted for a gang: they count
// as leaving until the feed shows that they are gone. If there are none, the choice was not
// used, and counts as discarded.
func (s Gangs) Record(g *Gang, victims []string) {
	if len(victims) == 0 {
		s.extender.metrics.count(resultDiscarded)
		return
	}
	s.record(g.pod(), victims, &outcome{result: resultAnswered})
}

// RecordProposal records pods that are evicted for a gang without the policy.
func (s Gangs) RecordProposal(g *Gang, victims []string) {
	if len(victims) > 0 {
		s.record(g.pod(), victims, &outcome{result: resultUnknown})
	}
}

// gangNode takes the place of the node in the answer for a gang, whose pods are on several.
const gangNode = "(pod group)"

// record stores the victims for a gang. It reserves nothing: kube-scheduler nominates each
// pod of the gang.
func (s Gangs) record(gang *kube.Pod, victims []string, end *outcome) {
	v := &kube.MetaVictims{}
	for _, uid := range victims {
		v.Pods = append(v.Pods, kube.MetaPod{UID: uid})
	}
	c := s.extender.cache
	c.recordAnswer(gang, map[string]*kube.MetaVictims{gangNode: v}, end, s.extender.cfg.Decided != nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.answers.byPod[key(gang)]; a != nil {
		c.answers.unreserve(a)
	}
}

// decide evaluates a gang with the policy.
func (s Gangs) decide(g *Gang) (*GangChoice, outcome) {
	if len(g.Pods) == 0 {
		return nil, outcome{result: resultUnknown, err: fmt.Errorf("pod group %s has no pods to be scheduled", g.Name)}
	}
	state := s.extender.state
	q, err := state.gangQuery(g)
	if err != nil {
		return nil, outcome{result: resultUnknown, err: err}
	}
	sched := state.acquireScheduler(s.extender.cfg.Policies)
	defer state.releaseScheduler(sched)
	all := len(g.Pods)
	choice, end := q.evaluate(sched, all)
	if end.result != resultVetoed || g.AtLeast >= all {
		return choice, end
	}
	// Fewer pods need no more evictions than more pods, so that the search may be binary.
	least := max(g.AtLeast, 1)
	sort.Search(all-least, func(i int) bool {
		one, result := q.evaluate(sched, all-1-i)
		if result.result != resultVetoed {
			choice, end = one, result
		}
		return result.result != resultVetoed
	})
	return choice, end
}

// A gangQuery is one preemption for a gang in terms of the scheduler.
type gangQuery struct {
	now     int64
	snap    *state.Snapshot // no pod of the gang is placed
	gang    *kube.GangTranslation
	leaving []string
	explain bool
}

// gangQuery returns the query for a gang. It returns an error if the model cannot express a
// requirement of one of its pods.
func (s *clusterState) gangQuery(g *Gang) (q *gangQuery, err error) {
	pods := make([]*kube.Pod, len(g.Pods))
	for i, p := range g.Pods {
		pods[i] = asPending(p)
	}
	err = s.translate(pods, func() (ok bool, err error) {
		q, ok, err = s.forkForGang(pods, g.Priority)
		return ok, err
	})
	return q, err
}

// forkForGang prepares a fork of the state for a gang, as forkWith does for a pod.
func (s *clusterState) forkForGang(pods []*kube.Pod, priority int32) (q *gangQuery, ok bool, err error) {
	txn := s.snap.Fork(s.snap.Index() + 1)
	q = &gangQuery{now: s.cfg.Clock.Now().UnixNano(), leaving: s.cache.leaving(), explain: s.cfg.Decided != nil}
	s.removeLeaving(txn, nil)
	if ok, err := s.reserveNominated(txn, pods, nil); !ok {
		return nil, false, err
	}
	if q.gang, ok = s.cluster.TranslateGang(pods, priority); !ok {
		return nil, false, nil
	}
	for _, report := range q.gang.Reports {
		if err := requireExact(report); err != nil {
			return nil, false, err
		}
	}
	var allocs []*model.Allocation
	for node := range s.special {
		allocs = startUnstarted(txn, node, allocs, q.now)
	}
	txn.ConfigWriter().Set(s.config(true))
	q.snap = txn.Snapshot()
	return q, true, nil
}

// evaluate runs the scheduler for the first pods of the gang.
func (q *gangQuery) evaluate(s *scheduler.Scheduler, pods int) (*GangChoice, outcome) {
	txn := q.snap.Fork(q.snap.Index() + 1)
	job := q.gang.Job(pods)
	if err := txn.JobWriter().Upsert(job); err != nil {
		return nil, outcome{result: resultUnknown, err: err}
	}
	snap := txn.Snapshot()
	out, err := s.Process((&query{job: job}).eval(), snap, q.now)
	if err == nil {
		err = out.Fault
	}
	if err != nil {
		return nil, outcome{result: resultFault, err: err}
	}
	if !out.Placed() {
		return &GangChoice{}, outcome{result: resultVetoed}
	}
	return q.readPlan(out, snap, pods)
}

// readPlan converts a plan that places pods of the gang.
func (q *gangQuery) readPlan(out *scheduler.Outcome, snap *state.Snapshot, pods int) (*GangChoice, outcome) {
	choice, end := &GangChoice{Placed: pods, Victims: slices.Clone(q.leaving)}, outcome{result: resultAnswered}
	var victims []*model.Allocation
	for i := range out.Plan.Groups {
		g := &out.Plan.Groups[i]
		for _, v := range g.Evictions {
			a := snap.Alloc(v.AllocID)
			if a == nil || isReservation(a) {
				return nil, outcome{result: resultUnknown, err: errors.New("the policy evicts pods that are not running yet")}
			}
			victims = append(victims, a)
			choice.Victims = append(choice.Victims, a.ID)
		}
		if q.explain {
			end.reasons = append(end.reasons, (&query{snap: snap}).reasons(g.Choices)...)
		}
	}
	if len(choice.Victims) == 0 {
		return nil, outcome{result: resultUnknown, err: errors.New("the pods fit without evictions: the cache differs from that of kube-scheduler")}
	}
	end.groups = countCohorts(victims)
	return choice, end
}

// logGang logs the preemption for a gang.
func logGang(ctx context.Context, log *slog.Logger, g *Gang, choice *GangChoice, end outcome, duration time.Duration) {
	level := slog.LevelInfo
	if end.failed() {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("outcome", end.result), slog.String("pod_group", g.Namespace+"/"+g.Name), slog.Int("pods", len(g.Pods)), slog.Duration("duration", duration)}
	if choice != nil {
		attrs = append(attrs, slog.Int("pods_placed", choice.Placed), slog.Int("victims", len(choice.Victims)))
	}
	if end.err != nil {
		attrs = append(attrs, slog.Any("err", end.err))
	}
	log.LogAttrs(ctx, level, "kubernetes preemption", attrs...)
}
