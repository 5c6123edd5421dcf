package extender

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
)

// nodesRequest is what filter and prioritize are asked about.
type nodesRequest struct {
	args  *kube.ExtenderArgs
	names []string
}

// readNodes reads a request of filter or prioritize, and takes over what it carries.
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
		q.args.Pod = nil // what would be judged is not what was said
	}
	return q, nil
}

// readFullNodes takes over nodes, and names them.
func (e *Extender) readFullNodes(texts []json.RawMessage) ([]string, error) {
	names, sums := e.cache.knownNodes(texts)
	for i, name := range names {
		if name != "" {
			continue
		}
		n := &kube.Node{}
		if _, err := tolerateTypeError(json.Unmarshal(texts[i], n)); err != nil { // else as far as it goes
			return nil, err
		}
		if names[i] = n.Metadata.Name; names[i] != "" {
			e.cache.observeNode(n, sums[i])
		}
	}
	return names, nil
}

// serveFilter leaves out the nodes that the scheduler would not place the pod on
// without evicting anybody. A node of which nothing is known stays.
func (e *Extender) serveFilter(ctx context.Context, body io.Reader) (any, error) {
	q, err := e.readNodes(body)
	if err != nil {
		return nil, err
	}
	verdicts := e.checkNodes(ctx, q)
	answer := &kube.ExtenderFilterResult{FailedNodes: map[string]string{}, FailedAndUnresolvableNodes: map[string]string{}}
	names, whole := []string{}, []json.RawMessage{}
	for i, name := range q.names {
		v, judged := verdicts[name]
		switch {
		case judged && v.Unresolvable:
			answer.FailedAndUnresolvableNodes[name] = v.Reason
		case judged && !v.Fits:
			answer.FailedNodes[name] = v.Reason
		case q.args.Nodes != nil:
			whole = append(whole, q.args.Nodes.Items[i])
		default:
			names = append(names, name)
		}
	}
	if q.args.Nodes != nil {
		return fullNodesResult{whole, answer}, nil
	} else if q.args.NodeNames != nil {
		answer.NodeNames = &names
	}
	return answer, nil
}

// fullNodesResult is filter's answer with nodes as they came, of which nobody looks at the
// texts once more: they may be many MiB.
type fullNodesResult struct {
	nodes  []json.RawMessage
	answer *kube.ExtenderFilterResult // but for Nodes
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

// servePrioritize scores nodes as the scheduler ranks them for the pod: by fullness as
// the cluster's algorithm wants it, affinities, spread and taints that are wishes.
func (e *Extender) servePrioritize(ctx context.Context, body io.Reader) (any, error) {
	q, err := e.readNodes(body)
	if err != nil {
		return nil, err
	}
	list := make([]kube.HostPriority, len(q.names))
	var verdicts map[string]placement.NodeResult
	if e.cache.isSynced() { // else nodes are taken to be empty
		if verdicts = e.lastResults(q); verdicts == nil {
			verdicts = e.checkNodes(ctx, q)
		}
	}
	score := scores(verdicts, q.names)
	for i, name := range q.names {
		list[i] = kube.HostPriority{Host: name, Score: score(verdicts[name])}
	}
	return list, nil
}

// maxScore is what the best node gets.
const maxScore = 10

// scores makes of ranks, which are in [-1, 1], whole numbers from 0 to 10: the best of
// the nodes gets 10, and a rank lower by 1, or the worst where it is worse than that,
// gets 0. Where nothing is known of some node none is preferred.
func scores(verdicts map[string]placement.NodeResult, names []string) func(placement.NodeResult) int64 {
	best, worst := math.Inf(-1), math.Inf(1)
	for _, name := range names {
		v, judged := verdicts[name]
		if !judged {
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

// nodeCheck is what was said of a pod last: prioritize asks about what filter left.
type nodeCheck struct {
	pod     string
	version uint64 // of the cache
	results map[string]placement.NodeResult
}

// checkNodes asks the scheduler about the nodes of a request. Of those of which nothing is
// known, or where it cannot be asked, nothing is said.
func (e *Extender) checkNodes(ctx context.Context, q *nodesRequest) map[string]placement.NodeResult {
	pod := q.args.Pod
	if pod == nil || pod.Metadata.Name == "" || len(q.names) == 0 {
		return nil
	}
	verdicts, end := runBounded(ctx, e, func() (map[string]placement.NodeResult, outcome) { return e.runCheck(pod) })
	if end.failed() {
		e.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "kubernetes nodes not judged", slog.String("outcome", end.result), slog.Any("err", end.err))
		return nil
	}
	return verdicts
}

// lastResults is what filter said last, if that was of the same pod and nothing has
// changed; nil: it was not.
func (e *Extender) lastResults(q *nodesRequest) map[string]placement.NodeResult {
	j := e.lastCheck.Load()
	if j == nil || q.args.Pod == nil || j.pod != key(q.args.Pod) || j.version != e.cache.changes.Load() {
		return nil
	}
	for _, name := range q.names {
		if _, judged := j.results[name]; !judged {
			return nil
		}
	}
	return j.results
}

// runCheck has the scheduler look at the cluster as it stands.
func (e *Extender) runCheck(pod *kube.Pod) (map[string]placement.NodeResult, outcome) {
	if !e.cache.isSynced() && pod.DependsOnOtherNodes() {
		return nil, outcome{result: resultUnknown}
	}
	changes := e.cache.changes.Load()
	q, err := e.state.query(asPending(pod))
	if err != nil {
		return nil, outcome{result: resultUnknown, err: err}
	}
	s := e.state.acquireScheduler(e.cfg.Policies)
	defer e.state.releaseScheduler(s)
	verdicts, err := s.CheckNodes(q.eval(), q.group, q.snap, q.now)
	if err != nil {
		return nil, outcome{result: resultInternal, err: err}
	}
	e.lastCheck.Store(&nodeCheck{key(pod), changes, verdicts})
	return verdicts, outcome{result: resultChosen}
}
