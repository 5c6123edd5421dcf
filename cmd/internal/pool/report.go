package pool

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A Reporter reports the state and the decisions of a controller to a pool of servers.
// Decisions wait in memory while no server responds. Create one with NewReporter.
type Reporter struct {
	servers client.Kubernetes
	state   func() client.KubernetesController
	version func() string
	log     *slog.Logger
	// reported is the state in the last report that a server accepted. Only report uses it.
	reported client.KubernetesController

	mu      sync.Mutex
	waiting []*client.KubernetesDecision // oldest first, at most maxWaitingDecisions
	lost    int64                        // decisions that exceeded the limit, or were too large
}

// NewReporter returns a reporter. state returns the state of the controller, and version
// the version of its policy in the pool; version must not block.
func NewReporter(servers *client.Client, state func() client.KubernetesController, version func() string, log *slog.Logger) *Reporter {
	return &Reporter{servers: servers.Kubernetes(), state: state, version: version, log: log}
}

const (
	reportInterval      = time.Second // between two reports of decisions, or of changes of the state
	stateInterval       = 10          // reports of the state, in intervals without decisions or changes
	maxWaitingDecisions = 4096
	maxReported         = 256 // decisions in one report; fewer if its size exceeds the limit of a server
)

// Add queues a decision. It never blocks.
func (r *Reporter) Add(d extender.Decision) {
	one := &client.KubernetesDecision{
		Time: d.Time.UnixNano(), Pod: reportedPod(&d.Pod), Node: d.Node, Victims: []client.KubernetesPod{}, Outcome: d.Outcome,
		Reasons: d.Reasons, Problem: d.Problem, Proposed: d.Proposed, PolicyVersion: r.version(),
	}
	for i := range d.Victims {
		one.Victims = append(one.Victims, reportedPod(&d.Victims[i]))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting = append(r.waiting, one); len(r.waiting) > maxWaitingDecisions {
		r.waiting = slices.Delete(r.waiting, 0, 1)
		r.lost++
	}
}

func reportedPod(p *extender.PodRef) client.KubernetesPod {
	return client.KubernetesPod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Priority: int(p.Priority)}
}

// Run reports until the context is cancelled, and then once more.
func (r *Reporter) Run(ctx context.Context) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	failed := false // an error is logged once
	for n := 0; ; n++ {
		err := r.report(ctx, n%stateInterval == 0)
		if err != nil && !failed && ctx.Err() == nil {
			r.log.WarnContext(ctx, "report to the pool failed", "err", err)
		}
		failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			if err := r.report(last, true); err != nil {
				r.log.WarnContext(ctx, "report to the pool failed", "err", err)
			}
			return
		}
	}
}

// report sends the waiting decisions, if there are any, if the state has changed, or if always is set. If the server
// refuses a report because of its size, the next one has half as many decisions. A decision
// that is too large alone is dropped, because it would block all later ones.
func (r *Reporter) report(ctx context.Context, always bool) error {
	batch := maxReported
	for {
		r.mu.Lock()
		sent := slices.Clone(r.waiting[:min(len(r.waiting), batch)])
		lost := r.lost
		r.mu.Unlock()
		state := r.state()
		if len(sent) == 0 && !always && !r.hasChanged(&state) {
			return nil
		}
		full := &client.KubernetesReport{KubernetesController: state, Decisions: sent}
		full.Lost = lost
		err := r.servers.Report(ctx, full)
		switch tooLarge := client.HasCode(err, client.CodeTooLarge); {
		case tooLarge && len(sent) > 1:
			batch = len(sent) / 2
			continue
		case tooLarge && len(sent) == 1:
			r.log.WarnContext(ctx, "decision is too large for a report", "namespace", sent[0].Pod.Namespace, "name", sent[0].Pod.Name, "err", err)
			r.remove(1, lost, true)
		case err != nil:
			return err
		default:
			r.reported = state
			r.remove(len(sent), lost, false)
			if always = false; len(sent) < batch {
				return nil
			}
		}
		batch = min(2*batch, maxReported)
	}
}

// hasChanged reports whether a state differs from the reported one in what operators wait
// for. The numbers of nodes and pods change all the time.
func (r *Reporter) hasChanged(state *client.KubernetesController) bool {
	return state.Ready != r.reported.Ready || state.PolicyVersion != r.reported.PolicyVersion || state.PolicyProblem != r.reported.PolicyProblem
}

// remove removes the first n decisions, which were sent when lost was read. If isLost is
// set, they count as lost.
func (r *Reporter) remove(n int, lost int64, isLost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = max(0, n-int(r.lost-lost)) // Add has removed the others, and counted them
	r.waiting = slices.Delete(r.waiting, 0, n)
	if isLost {
		r.lost += int64(n)
	}
}
