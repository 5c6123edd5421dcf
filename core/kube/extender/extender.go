package extender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
)

// Binder gives a pod its node in Kubernetes.
type Binder interface {
	Bind(ctx context.Context, args *kube.ExtenderBindingArgs) error
}

// Config is what an Extender works with. Policies is needed.
type Config struct {
	Policies scheduler.Policies
	// Settings are what operators set for scheduling; nil: the defaults.
	Settings func() *model.SchedulerConfig
	// Deadline is how long a policy may take before what kube-scheduler proposed
	// stands; default: 3s, as kube-scheduler itself waits for 5s.
	Deadline time.Duration
	// Binder is asked to bind; nil: bind is refused.
	Binder Binder

	Clock    clock.Clock           // default: clock.Real
	Logger   *slog.Logger          // default: nothing is logged
	Registry prometheus.Registerer // default: nothing is measured
}

// OnFault is what becomes of a preemption when the policy cannot be asked.
type OnFault bool

// What may become of it.
const (
	KeepProposal OnFault = false // what kube-scheduler proposed stands
	EvictNone    OnFault = true
)

// PreemptOptions are what the caller wants of one preemption.
type PreemptOptions struct {
	OnFault OnFault
	// AllNodes answers victims for every node on which the policy finds some, and
	// leaves the choice of the node to kube-scheduler.
	AllNodes bool
}

// Extender answers kube-scheduler.
type Extender struct {
	cfg       Config
	cache     *cache
	metrics   *metrics
	busy      chan struct{} // searches at a time
	lastCheck atomic.Pointer[nodeCheck]
	// What filter and prioritize look at.
	state *clusterState
}

// maxConcurrent is how many requests are worked on at a time. kube-scheduler asks
// one after another; those that took too long may still be at it.
const maxConcurrent = 4

// New makes an extender.
func New(cfg Config) (*Extender, error) {
	if cfg.Policies == nil {
		return nil, errors.New("the extender has no policies to ask")
	}
	if cfg.Deadline <= 0 {
		cfg.Deadline = 3 * time.Second
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Real{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Settings == nil {
		cfg.Settings = func() *model.SchedulerConfig { return nil }
	}
	e := &Extender{cfg: cfg, cache: newCache(), busy: make(chan struct{}, maxConcurrent)}
	e.state = &clusterState{cache: e.cache, cfg: &e.cfg}
	e.metrics = newMetrics(cfg.Registry, e.cache.size)
	return e, nil
}

// Feed tells the extender of a cluster: of all of it, or of what has changed.
func (e *Extender) Feed(d *kube.Dump, whole bool) {
	e.cache.feed(d, whole, e.cfg.Clock.Now())
	nodes, pods := e.cache.size()
	e.cfg.Logger.Debug("kubernetes objects taken over", "whole", whole, "nodes", nodes, "pods", pods)
}

// Preempt chooses whom to evict for a pod, among the nodes that kube-scheduler
// proposes. It never fails: what cannot be decided stays as it was proposed.
func (e *Extender) Preempt(ctx context.Context, args *kube.ExtenderPreemptionArgs, w PreemptOptions) *kube.ExtenderPreemptionResult {
	from := e.cfg.Clock.Now()
	proposal := args.ProposedVictims()
	answer, end := e.preempt(ctx, args, proposal, w)
	if end.failed() && w.OnFault == EvictNone {
		answer = map[string]*kube.MetaVictims{}
	}
	took := e.cfg.Clock.Now().Sub(from)
	e.metrics.preempted(end, took)
	e.logPreemption(ctx, args, len(proposal), answer, end, took)
	return &kube.ExtenderPreemptionResult{NodeNameToMetaVictims: answer}
}

// outcome is how a preemption was answered.
type outcome struct {
	result string // for metrics
	err    error  // why the proposal stands
	// unknownNodes is on how many nodes it stands as the policy was not asked about them.
	unknownNodes int
}

// The ends of a preemption.
const (
	resultChosen   = "chosen"   // by the policy
	resultVetoed   = "vetoed"   // the policy lets nobody be evicted
	resultUnknown  = "unknown"  // not enough is known to ask it
	resultFault    = "fault"    // the policy's
	resultTimeout  = "timeout"  // it took too long
	resultBusy     = "busy"     // too many are at it
	resultInternal = "internal" // ours
)

func (o outcome) failed() bool { return o.err != nil }

func (e *Extender) preempt(ctx context.Context, args *kube.ExtenderPreemptionArgs, proposal map[string]*kube.MetaVictims, w PreemptOptions) (map[string]*kube.MetaVictims, outcome) {
	if args.Pod == nil || args.Pod.Metadata.Name == "" {
		return proposal, outcome{result: resultUnknown, err: errors.New("the request names no pod")}
	}
	if len(proposal) == 0 {
		return proposal, outcome{result: resultVetoed}
	}
	answer, end := runBounded(ctx, e, func() (map[string]*kube.MetaVictims, outcome) { return e.decide(args, proposal, w) })
	if end.failed() && answer == nil {
		return proposal, end
	}
	return answer, end
}

// runBounded works something out, for as long as the extender may take. What takes longer
// goes on until the policy's own limits end it.
func runBounded[T any](ctx context.Context, e *Extender, work func() (T, outcome)) (T, outcome) {
	var none T
	select {
	case e.busy <- struct{}{}:
	default:
		return none, outcome{result: resultBusy, err: fmt.Errorf("%d requests are being worked on", maxConcurrent)}
	}
	type result struct {
		answer T
		end    outcome
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-e.busy }()
		defer func() {
			if thrown := recover(); thrown != nil {
				e.cfg.Logger.ErrorContext(ctx, "extender panicked", "panic", thrown)
				done <- result{none, outcome{result: resultInternal, err: fmt.Errorf("panic: %v", thrown)}}
			}
		}()
		answer, end := work()
		done <- result{answer, end}
	}()
	late := make(chan struct{})
	timer := e.cfg.Clock.AfterFunc(e.cfg.Deadline, func() { close(late) })
	defer timer.Stop()
	select {
	case r := <-done:
		return r.answer, r.end
	case <-late:
		return none, outcome{result: resultTimeout, err: fmt.Errorf("no answer within %v", e.cfg.Deadline)}
	case <-ctx.Done():
		return none, outcome{result: resultTimeout, err: ctx.Err()}
	}
}

// logPreemption logs a preemption.
func (e *Extender) logPreemption(ctx context.Context, args *kube.ExtenderPreemptionArgs, proposed int, answer map[string]*kube.MetaVictims, end outcome, took time.Duration) {
	level, victims := slog.LevelInfo, 0
	if end.failed() {
		level = slog.LevelWarn
	}
	for _, v := range answer {
		victims += len(v.Pods)
	}
	attrs := []slog.Attr{
		slog.String("outcome", end.result), slog.Int("nodes_proposed", proposed), slog.Int("nodes_answered", len(answer)),
		slog.Int("victims", victims), slog.Duration("duration", took),
	}
	if args.Pod != nil {
		attrs = append(attrs, slog.String("pod", args.Pod.Metadata.Namespace+"/"+args.Pod.Metadata.Name))
	}
	if end.unknownNodes > 0 {
		attrs = append(attrs, slog.Int("nodes_unknown", end.unknownNodes))
	}
	if end.err != nil {
		attrs = append(attrs, slog.Any("err", end.err))
	}
	e.cfg.Logger.LogAttrs(ctx, level, "kubernetes preemption", attrs...)
}
