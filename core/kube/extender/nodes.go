package extender

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
)

// A nodesRequest is a decoded request of filter or prioritize.
type nodesRequest struct {
	args  *kube.ExtenderArgs
	names []string
}

// readNodes decodes a request of filter or prioritize and caches its objects.
func (e *Extender) readNodes(body io.Reader) (*nodesRequest, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	q := &nodesRequest{}
	q.args, err = kube.ReadExtenderArgs(text)
	odd, err := tolerateTypeError(err)
	if err != nil {
		return nil, err
	}
	switch {
	case q.args.Nodes == nil && q.args.NodeNames != nil:
		q.names = *q.args.NodeNames
	case q.args.Nodes != nil:
		if q.names, err = e.readFullNodes(q.args.Nodes.Items); err != nil {
			return nil, err
		}
	}
	e.cache.observePods(q.args.Pod)
	if odd {
		q.args.Pod = nil // decoded incompletely: the result would be wrong
	}
	return q, nil
}

// readFullNodes caches complete nodes and returns their names.
func (e *Extender) readFullNodes(texts []json.RawMessage) ([]string, error) {
	names, sums := e.cache.knownNodes(texts)
	for i, name := range names {
		if name != "" {
			continue
		}
		n := &kube.Node{}
		if _, err := tolerateTypeError(json.Unmarshal(texts[i], n)); err != nil { // on a type error the rest is used
			return nil, err
		}
		if names[i] = n.Metadata.Name; names[i] != "" {
			e.cache.observeNode(n, sums[i])
		}
	}
	return names, nil
}

// serveFilter removes the nodes on which the scheduler would not place the pod
// without evictions. Unknown nodes pass the filter.
func (e *Extender) serveFilter(ctx context.Context, body io.Reader) (any, error) {
	q, err := e.readNodes(body)
	if err != nil {
		return nil, err
	}
	var nominated string
	if q.args.Pod != nil {
		nominated = e.cache.nominatedNode(q.args.Pod)
	}
	results := e.checkNodes(ctx, q)
	answer := &kube.ExtenderFilterResult{FailedNodes: map[string]string{}, FailedAndUnresolvableNodes: map[string]string{}}
	names, full := []string{}, []json.RawMessage{}
	pass := func(i int) {
		if q.args.Nodes != nil {
			full = append(full, q.args.Nodes.Items[i])
		} else {
			names = append(names, q.names[i])
		}
	}
	for i, name := range q.names {
		v, ok := results[name]
		switch {
		case name == nominated && name != "": // kube-scheduler has evicted pods there for this pod
			pass(i)
		case ok && v.Unresolvable:
			answer.FailedAndUnresolvableNodes[name] = v.Reason
		case ok && !v.Fits && !isCounted(v.Lacks):
			answer.FailedNodes[name] = v.Reason
		default:
			pass(i)
		}
	}
	if q.args.Nodes != nil {
		return fullNodesResult{full, answer}, nil
	} else if q.args.NodeNames != nil {
		answer.NodeNames = &names
	}
	return answer, nil
}

// isCounted reports whether a node lacks only resources that kube-scheduler itself
// counts, always from newer data: it sends only nodes that have enough of them. A
// rejection here would cause an eviction that is not necessary. kube-scheduler can be
// configured to ignore extended resources, which have a domain in their names.
func isCounted(lacks []string) bool {
	return len(lacks) > 0 && !slices.ContainsFunc(lacks, func(name string) bool { return strings.Contains(name, "/") })
}

// A fullNodesResult is a filter response with complete nodes. Their texts are copied
// without encoding them again, because they may amount to many MiB.
type fullNodesResult struct {
	nodes  []json.RawMessage
	answer *kube.ExtenderFilterResult // without Nodes
}

func (a fullNodesResult) text() ([]byte, error) {
	rest, err := json.Marshal(a.answer)
	if err != nil {
		return nil, err
	}
	size := len(rest) + 64
	for _, n := range a.nodes {
		size += len(n) + 1
	}
	text := append(make([]byte, 0, size), `{"Nodes":{"items":[`...)
	for i, n := range a.nodes {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, n...)
	}
	text = append(text, `]}`...)
	if len(rest) > len("{}") {
		text = append(text, ',')
	}
	return append(text, rest[1:]...), nil
}

// servePrioritize scores the nodes by the scheduler's rank for the pod: fullness
// according to the cluster's algorithm, affinities, spread, and PreferNoSchedule
// taints.
func (e *Extender) servePrioritize(ctx context.Context, body io.Reader) (any, error) {
	q, err := e.readNodes(body)
	if err != nil {
		return nil, err
	}
	list := make([]kube.HostPriority, len(q.names))
	var results map[string]placement.NodeResult
	if e.cache.isSynced() { // otherwise nodes would count as empty
		if results = e.lastResults(q); results == nil {
			results = e.checkNodes(ctx, q)
		}
	}
	score := scores(results, q.names)
	for i, name := range q.names {
		list[i] = kube.HostPriority{Host: name, Score: score(results[name])}
	}
	return list, nil
}

// maxScore is the score of the best node.
const maxScore = 10

// scores returns a function that maps ranks in [-1, 1] to integers from 0 to 10. The
// best node gets 10. A rank lower by 1 gets 0, or the worst rank if the range is
// wider. If a node is unknown all nodes get 0, so that none is preferred.
func scores(results map[string]placement.NodeResult, names []string) func(placement.NodeResult) int64 {
	best, worst := math.Inf(-1), math.Inf(1)
	for _, name := range names {
		v, ok := results[name]
		if !ok {
			return func(placement.NodeResult) int64 { return 0 }
		}
		if v.Fits {
			best, worst = max(best, v.Score), min(worst, v.Score)
		}
	}
	span := max(1, best-worst)
	return func(v placement.NodeResult) int64 {
		if !v.Fits {
			return 0
		}
		return int64(math.Round(maxScore * (1 - (best-v.Score)/span)))
	}
}

// A nodeCheck is the last result of filter, which prioritize reuses.
type nodeCheck struct {
	pod     string
	version uint64 // cache.changes before the check
	results map[string]placement.NodeResult
}

// checkNodes returns the scheduler's result for each cached node, or nil if the
// scheduler cannot evaluate the pod.
func (e *Extender) checkNodes(ctx context.Context, q *nodesRequest) map[string]placement.NodeResult {
	pod := q.args.Pod
	if pod == nil || pod.Metadata.Name == "" || len(q.names) == 0 {
		return nil
	}
	results, end := runBounded(ctx, e, func() (map[string]placement.NodeResult, outcome) { return e.runCheck(pod) })
	if end.failed() {
		e.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "kubernetes nodes not checked", slog.String("outcome", end.result), slog.Any("err", end.err))
		return nil
	}
	return results
}

// lastResults returns the results of the last check if it was for the same pod and
// nothing has changed since; otherwise nil.
func (e *Extender) lastResults(q *nodesRequest) map[string]placement.NodeResult {
	j := e.lastCheck.Load()
	if j == nil || q.args.Pod == nil || j.pod != key(q.args.Pod) || j.version != e.cache.changes.Load() {
		return nil
	}
	for _, name := range q.names {
		if _, ok := j.results[name]; !ok {
			return nil
		}
	}
	return j.results
}

// runCheck evaluates the pod on the current cluster state.
func (e *Extender) runCheck(pod *kube.Pod) (map[string]placement.NodeResult, outcome) {
	if !e.cache.isSynced() && dependsOnOtherNodes(e.cache, pod) {
		return nil, outcome{result: resultUnknown}
	}
	changes := e.cache.changes.Load()
	q, err := e.state.query(asPending(pod), nil, false)
	if err != nil {
		return nil, outcome{result: resultUnknown, err: err}
	}
	s := e.state.acquireScheduler(e.cfg.Policies)
	defer e.state.releaseScheduler(s)
	results, err := s.CheckNodes(q.eval(), q.group, q.snap, q.now)
	if err != nil {
		return nil, outcome{result: resultInternal, err: err}
	}
	e.lastCheck.Store(&nodeCheck{key(pod), changes, results})
	return results, outcome{result: resultAnswered}
}
