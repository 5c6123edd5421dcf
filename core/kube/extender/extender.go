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

// A Binder binds pods to nodes in Kubernetes.
type Binder interface {
	Bind(ctx context.Context, args *kube.ExtenderBindingArgs) error
}

// Config holds the dependencies of an Extender. Policies is required.
type Config struct {
	Policies scheduler.Policies
	// Settings returns the scheduler configuration; default: built-in defaults.
	Settings func() *model.SchedulerConfig
	// Deadline bounds the time of one request; default: 3s. When it expires the
	// proposal of kube-scheduler stands. kube-scheduler itself gives up after 5s.
	Deadline time.Duration
	// EvictionDeadline is the time within which the feed must report the eviction of
	// named victims; default: 1m. Until then they count as leaving. The grace period
	// of a victim that is terminating is added.
	EvictionDeadline time.Duration
	// Live is set if a watch feeds the extender object by object. Objects of requests
	// are then not stored, and Feed keeps the scheduler state up to date, so that no
	// request has to build it.
	Live bool
	// Decided, if not nil, receives the final result of each preemption. It must not
	// block, and must not call the Extender.
	Decided func(Decision)
	// Binder serves bind; if nil, bind requests are rejected.
	Binder Binder

	Clock    clock.Clock           // default: clock.Real
	Logger   *slog.Logger          // default: no logging
	Registry prometheus.Registerer // default: metrics are not registered
}

// OnFault selects the response to a preemption if the policy fails.
type OnFault bool

// Values of OnFault.
const (
	KeepProposal OnFault = false // the proposal of kube-scheduler stands
	EvictNone    OnFault = true
)

// PreemptOptions are the options of one preemption request.
type PreemptOptions struct {
	OnFault OnFault
	// AllNodes requests victims for every node for which the policy finds some.
	// kube-scheduler then chooses the node.
	AllNodes bool
	// AcrossNodes allows the eviction of pod groups that have pods on other nodes than the
	// preemptor's. kube-scheduler accepts that of a plugin, and of no extender.
	AcrossNodes bool
}

// An Extender answers the requests of kube-scheduler.
type Extender struct {
	cfg       Config
	cache     *cache
	metrics   *metrics
	busy      chan struct{} // holds one element per running request
	lastCheck atomic.Pointer[nodeCheck]
	// state serves all verbs but bind.
	state *clusterState
}

// maxConcurrent bounds the requests that are processed concurrently. kube-scheduler
// sends one at a time, but requests that exceeded the deadline may still be running.
const maxConcurrent = 4

// New returns an Extender. It returns an error if cfg.Policies is nil.
func New(cfg Config) (*Extender, error) {
	if cfg.Policies == nil {
		return nil, errors.New("missing policies")
	}
	if cfg.Deadline <= 0 {
		cfg.Deadline = 3 * time.Second
	}
	if cfg.EvictionDeadline <= 0 {
		cfg.EvictionDeadline = time.Minute
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
	e.metrics = newMetrics(cfg.Registry, e.cache)
	e.cache.live = cfg.Live
	e.cache.answers = newAnswers(cfg.EvictionDeadline, cfg.Clock.Now, e.finished)
	return e, nil
}

// Feed stores objects of the Kubernetes cluster. If whole is true, d contains the
// whole cluster and replaces all cached objects; otherwise it contains changes. If
// Config.Live is set, requests are fast once the whole cluster has been fed.
func (e *Extender) Feed(d *kube.Dump, whole bool) {
	e.cache.feed(d, whole, e.cfg.Clock.Now())
	if e.cfg.Live {
		e.state.prepare(whole)
	}
	nodes, pods := e.cache.size()
	e.cfg.Logger.Debug("kubernetes objects stored", "whole", whole, "nodes", nodes, "pods", pods)
}

// Size returns the number of nodes and pods of the cluster that the Extender knows.
func (e *Extender) Size() (nodes, pods int) { return e.cache.size() }

// finished counts and reports the final result of an answer.
func (e *Extender) finished(a *answer, result string) {
	e.metrics.count(result)
	if e.cfg.Decided != nil {
		e.cfg.Decided(a.decision(result))
	}
}

// Preempt chooses the victims for a pod among the proposed nodes. It never fails: if
// the policy makes no decision, the proposal is returned, or nothing if
// options.OnFault is EvictNone.
func (e *Extender) Preempt(ctx context.Context, args *kube.ExtenderPreemptionArgs, w PreemptOptions) *kube.ExtenderPreemptionResult {
	answer, _ := e.decideAndRecord(ctx, args, w)
	return &kube.ExtenderPreemptionResult{NodeNameToMetaVictims: answer}
}

// Choose is Preempt for a caller that selects victims itself if the policy makes no
// decision, which the error reports. The caller then calls Record. The victims of a pod
// group may be on other nodes than the one that is chosen for the pod.
func (e *Extender) Choose(ctx context.Context, args *kube.ExtenderPreemptionArgs) (*kube.ExtenderPreemptionResult, error) {
	answer, err := e.decideAndRecord(ctx, args, PreemptOptions{OnFault: EvictNone, AcrossNodes: true})
	if err != nil {
		return nil, err
	}
	return &kube.ExtenderPreemptionResult{NodeNameToMetaVictims: answer}, nil
}

// Record records victims for a pod that were selected without the policy: they count as
// leaving, as those of a response do.
func (e *Extender) Record(pod *kube.Pod, nodes map[string]*kube.MetaVictims) {
	e.cache.requestAnswer(pod, nodes)
	if len(nodes) > 0 {
		e.cache.recordAnswer(pod, nodes, &outcome{result: resultUnknown}, false)
	}
}

// decideAndRecord decides on a request and records the response. The error is the reason
// why the policy did not decide.
func (e *Extender) decideAndRecord(ctx context.Context, args *kube.ExtenderPreemptionArgs, w PreemptOptions) (map[string]*kube.MetaVictims, error) {
	from := e.cfg.Clock.Now()
	proposal := args.ProposedVictims()
	if args.Pod != nil {
		e.cache.requestAnswer(args.Pod, proposal)
	}
	answer, end := e.preempt(ctx, args, proposal, w)
	if end.failed() && w.OnFault == EvictNone {
		answer = map[string]*kube.MetaVictims{}
	}
	duration := e.cfg.Clock.Now().Sub(from)
	if args.Pod != nil && len(answer) > 0 {
		e.cache.recordAnswer(args.Pod, answer, &end, e.cfg.Decided != nil)
	}
	if args.Pod != nil && end.result != resultAnswered && e.cfg.Decided != nil {
		e.cfg.Decided(unanswered(args, from, answer, &end))
	}
	e.metrics.preempted(end, duration)
	e.logPreemption(ctx, args, len(proposal), answer, end, duration)
	return answer, end.err
}

// An outcome describes how a request was answered.
type outcome struct {
	result string // label value in metrics
	err    error  // reason for which the proposal stands; nil: it does not
	// unknownNodes counts the proposed nodes that the policy did not evaluate.
	unknownNodes int
	reasons      []string // of the choice, if decisions are observed
	groups       int      // pod groups that the response names as a whole
	excluded     []string // pod groups that are excluded
}

// Results of a preemption.
const (
	resultAnswered    = "answered"    // the policy named victims; it becomes one of the following three
	resultChosen      = "chosen"      // kube-scheduler evicted the named victims
	resultDiscarded   = "discarded"   // kube-scheduler did not evict them
	resultUnconfirmed = "unconfirmed" // unknown, because the extender is not fed
	resultVetoed      = "vetoed"      // the policy allows no eviction
	resultGroup       = "group"       // the policy would evict a pod group that is excluded
	resultUnknown     = "unknown"     // the cache lacks required objects
	resultFault       = "fault"       // the policy failed
	resultTimeout     = "timeout"     // the deadline expired
	resultBusy        = "busy"        // too many concurrent requests
	resultRefused     = "refused"     // missing or unknown credentials, or an unsupported content type
	resultStandby     = "standby"     // another replica is the leader
	resultInternal    = "internal"    // internal error
)

func (o outcome) failed() bool { return o.err != nil }

func (e *Extender) preempt(ctx context.Context, args *kube.ExtenderPreemptionArgs, proposal map[string]*kube.MetaVictims, w PreemptOptions) (map[string]*kube.MetaVictims, outcome) {
	if args.Pod == nil || args.Pod.Metadata.Name == "" {
		return proposal, outcome{result: resultUnknown, err: errors.New("missing pod in the request")}
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

// runBounded runs work until the deadline. Work that takes longer continues in the
// background until the limits of the policy stop it. It returns resultBusy if too
// many requests are running.
func runBounded[T any](ctx context.Context, e *Extender, fn func() (T, outcome)) (T, outcome) {
	var none T
	select {
	case e.busy <- struct{}{}:
	default:
		return none, outcome{result: resultBusy, err: fmt.Errorf("%d requests are already being processed", maxConcurrent)}
	}
	type result struct {
		answer T
		end    outcome
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-e.busy }()
		defer func() {
			if panicked := recover(); panicked != nil {
				e.cfg.Logger.ErrorContext(ctx, "extender panicked", "panic", panicked)
				done <- result{none, outcome{result: resultInternal, err: fmt.Errorf("panic: %v", panicked)}}
			}
		}()
		answer, end := fn()
		done <- result{answer, end}
	}()
	expired := make(chan struct{})
	timer := e.cfg.Clock.AfterFunc(e.cfg.Deadline, func() { close(expired) })
	defer timer.Stop()
	select {
	case r := <-done:
		return r.answer, r.end
	case <-expired:
		return none, outcome{result: resultTimeout, err: fmt.Errorf("no answer within %v", e.cfg.Deadline)}
	case <-ctx.Done():
		return none, outcome{result: resultTimeout, err: ctx.Err()}
	}
}

// logPreemption logs a preemption.
func (e *Extender) logPreemption(ctx context.Context, args *kube.ExtenderPreemptionArgs, proposed int, answer map[string]*kube.MetaVictims, end outcome, duration time.Duration) {
	level, victims := slog.LevelInfo, 0
	if end.failed() {
		level = slog.LevelWarn
	}
	for _, v := range answer {
		victims += len(v.Pods)
	}
	attrs := []slog.Attr{
		slog.String("outcome", end.result), slog.Int("nodes_proposed", proposed), slog.Int("nodes_answered", len(answer)),
		slog.Int("victims", victims), slog.Duration("duration", duration),
	}
	if args.Pod != nil {
		attrs = append(attrs, slog.String("pod", args.Pod.Metadata.Namespace+"/"+args.Pod.Metadata.Name))
	}
	if end.unknownNodes > 0 {
		attrs = append(attrs, slog.Int("nodes_unknown", end.unknownNodes))
	}
	if len(end.excluded) > 0 {
		attrs = append(attrs, slog.Any("groups_excluded", end.excluded))
	}
	if end.err != nil {
		attrs = append(attrs, slog.Any("err", end.err))
	}
	e.cfg.Logger.LogAttrs(ctx, level, "kubernetes preemption", attrs...)
}
