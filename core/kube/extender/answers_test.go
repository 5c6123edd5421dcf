package extender

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A schedulerLoop imitates kube-scheduler: it filters, preempts, deletes victims and
// binds, with its own exact view of the cluster. The extender sees that view only when
// feed is called.
type schedulerLoop struct {
	*fixture
	verb    string // of preempt, with its options
	whole   bool   // proposals contain complete pods
	nodes   []*corev1.Node
	pods    map[string]*corev1.Pod // by UID
	evicted []string               // names, in order
	bound   int
	wasted  int // preemption requests after the first one of a pod
}

// newSchedulerLoop returns a full cluster. Each pod requests one CPU and has a
// priority below 100.
func newSchedulerLoop(t *testing.T, nodes, perNode int) *schedulerLoop {
	still := func(c *Config) { c.Clock = clock.NewVirtual(epoch) } // on a slow machine as well, no deadline passes
	s := &schedulerLoop{fixture: start(t, kubernetesPolicy, still), verb: "preempt", pods: map[string]*corev1.Pod{}}
	for i := range nodes {
		n := node(fmt.Sprintf("n%03d", i))
		n.Status.Allocatable[corev1.ResourceCPU] = *resource.NewQuantity(int64(perNode), resource.DecimalSI)
		s.nodes = append(s.nodes, n)
		for k := range perNode {
			s.add(pod(fmt.Sprintf("p%03d-%d", i, k), n.Name, "1", int32(i+k)%100))
		}
	}
	return s
}

func (s *schedulerLoop) add(p *corev1.Pod) *corev1.Pod {
	s.pods[string(p.UID)] = p
	return p
}

func (s *schedulerLoop) feedAll() {
	var all []any
	for _, n := range s.nodes {
		all = append(all, n)
	}
	for _, p := range s.pods {
		all = append(all, p)
	}
	s.feed(all...)
}

// byNode returns the pods by node or nominated node.
func (s *schedulerLoop) byNode() map[string][]*corev1.Pod {
	m := map[string][]*corev1.Pod{}
	for _, p := range s.pods {
		on := cmp.Or(p.Spec.NodeName, p.Status.NominatedNodeName)
		m[on] = append(m[on], p)
	}
	return m
}

// on returns the pods on a node, the least important first, and its free CPU for a
// pod. Nominated pods of at least the same priority count.
func (s *schedulerLoop) on(byNode map[string][]*corev1.Pod, n *corev1.Node, pending *corev1.Pod) (list []*corev1.Pod, free int64) {
	free = n.Status.Allocatable.Cpu().Value()
	for _, p := range byNode[n.Name] {
		nominated := p.Spec.NodeName == "" && p.Status.NominatedNodeName == n.Name && p != pending && *p.Spec.Priority >= *pending.Spec.Priority
		if nominated || p.Spec.NodeName == n.Name {
			free -= p.Spec.Containers[0].Resources.Requests.Cpu().Value()
		}
		if p.Spec.NodeName == n.Name && *p.Spec.Priority < *pending.Spec.Priority {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return int(*a.Spec.Priority) - int(*b.Spec.Priority) })
	return list, free
}

// cycle runs one scheduling cycle of a pod. It returns true if the pod was bound.
func (s *schedulerLoop) cycle(pending *corev1.Pod) bool {
	byNode := s.byNode()
	want := pending.Spec.Containers[0].Resources.Requests.Cpu().Value()
	var fitting []string
	for _, n := range s.nodes {
		if _, free := s.on(byNode, n, pending); free >= want {
			fitting = append(fitting, n.Name)
		}
	}
	if len(fitting) > 0 {
		var out extenderv1.ExtenderFilterResult
		s.send("filter", &extenderv1.ExtenderArgs{Pod: pending, NodeNames: &fitting}, &out)
		if passed := *out.NodeNames; len(passed) > 0 {
			var scores extenderv1.HostPriorityList
			s.send("prioritize", &extenderv1.ExtenderArgs{Pod: pending, NodeNames: &passed}, &scores)
			if best := slices.MaxFunc(scores, func(a, b extenderv1.HostPriority) int { return int(a.Score - b.Score) }); best.Host != "" {
				pending.Spec.NodeName, pending.Status.Phase = best.Host, corev1.PodRunning
				s.bound++
				return true
			}
		}
	}
	s.preemptFor(byNode, pending, want)
	return false
}

// preemptFor proposes victims on each node on which the eviction of pods helps, and
// evicts those of the response.
func (s *schedulerLoop) preemptFor(byNode map[string][]*corev1.Pod, pending *corev1.Pod, want int64) {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: pending, NodeNameToVictims: map[string]*extenderv1.Victims{}, NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	for _, n := range s.nodes {
		list, free := s.on(byNode, n, pending)
		i := 0
		for ; i < len(list) && free < want; i++ {
			free += list[i].Spec.Containers[0].Resources.Requests.Cpu().Value()
		}
		if free < want || i == 0 {
			continue
		}
		victims := slices.Clone(list[:i])
		slices.Reverse(victims)
		if s.whole {
			args.NodeNameToVictims[n.Name] = &extenderv1.Victims{Pods: victims}
			continue
		}
		meta := &extenderv1.MetaVictims{}
		for _, p := range victims {
			meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(p.UID)})
		}
		args.NodeNameToMetaVictims[n.Name] = meta
	}
	if pending.Status.NominatedNodeName != "" {
		s.wasted++
	}
	var out extenderv1.ExtenderPreemptionResult
	s.send(s.verb, args, &out)
	for _, node := range slices.Sorted(maps.Keys(out.NodeNameToMetaVictims))[:min(1, len(out.NodeNameToMetaVictims))] {
		pending.Status.NominatedNodeName = node
		if len(out.NodeNameToMetaVictims) > 1 { // without it, the extender does not see the choice
			if status, text := s.raw(http.MethodPut, "objects", event("MODIFIED", pending)); status != http.StatusOK {
				s.t.Fatalf("objects: %d %s", status, text)
			}
		}
		for _, v := range out.NodeNameToMetaVictims[node].Pods {
			victim := s.pods[v.UID]
			if victim == nil || victim.Spec.NodeName != node {
				s.t.Fatalf("response names %s, which is not on %s", v.UID, node)
			}
			delete(s.pods, v.UID)
			s.evicted = append(s.evicted, victim.Name)
		}
	}
}

// run adds the pods at once and schedules them until all are bound, with preemptions
// of all of them before the first is retried.
func (s *schedulerLoop) run(n, cpu, rounds int) {
	s.t.Helper()
	var waiting []*corev1.Pod
	for i := range n {
		waiting = append(waiting, s.add(pod(fmt.Sprintf("preemptor-%d", i), "", fmt.Sprint(cpu), 1000)))
	}
	for range rounds {
		waiting = slices.DeleteFunc(waiting, s.cycle)
	}
	if s.bound != n {
		s.t.Errorf("%d of %d pods bound after %d rounds, %d evicted", s.bound, n, rounds, len(s.evicted))
	}
}

// With a feed that is not updated, one preemptor evicts one pod. With nodes=all the
// extender sees the nomination of each preemptor in addition.
func TestAnswers_OneEvictionPerPreemptor(t *testing.T) {
	for _, c := range []struct {
		nodes, perNode, preemptors, cpu, evictions int
	}{{20, 4, 1, 1, 1}, {20, 4, 5, 1, 5}, {200, 10, 50, 2, 100}} {
		for _, verb := range []string{"preempt", "preempt?nodes=all"} {
			for _, whole := range []bool{false, true} {
				if c.nodes > 20 && (whole || soak.Race && !soak.Full()) {
					continue // slow
				}
				t.Run(fmt.Sprintf("%d nodes, %d preemptors, %s, whole %t", c.nodes, c.preemptors, verb, whole), func(t *testing.T) {
					s := newSchedulerLoop(t, c.nodes, c.perNode)
					s.verb, s.whole = verb, whole
					s.feedAll() // once: the extender does not see evictions
					s.run(c.preemptors, c.cpu, 3)
					if len(s.evicted) != c.evictions || s.wasted > 0 {
						t.Errorf("%d pods evicted and %d responses not used, want %d and 0\n%s", len(s.evicted), s.wasted, c.evictions, s.evicted)
					}
					s.feedAll()
					if got := s.countOf(resultChosen); got != float64(c.preemptors) || s.countOf(resultDiscarded) != 0 {
						t.Errorf("%v responses counted as chosen and %v as discarded, want %d and 0", got, s.countOf(resultDiscarded), c.preemptors)
					}
					if open, victims := s.extender.cache.unconfirmed(), s.extender.cache.leaving(); open != 0 || len(victims) > 0 {
						t.Errorf("%d answers with victims %v after the feed", open, victims)
					}
				})
			}
		}
	}
}

// If kube-scheduler requests the same pod again while the named victim is running, it
// has discarded the response. The victim is then a candidate again.
func TestAnswers_CountDiscardedResponses(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	nodes, big, small1, small2 := cluster()
	w.feed(append(nodes, big, small1, small2)...)
	pending, args := pod("pending", "", "2", 1000), map[string][]*corev1.Pod{"n2": {small1}}
	for range 3 {
		if got, want := w.preempt("preempt", metaProposalOf(pending, args)), "n2: small1"; got != want {
			t.Fatalf("got %q, want %q\n%s", got, want, w.log)
		}
	}
	if w.countOf(resultDiscarded) != 2 || w.countOf(resultChosen) != 0 {
		t.Errorf("%v discarded and %v chosen, want 2 and 0", w.countOf(resultDiscarded), w.countOf(resultChosen))
	}
	// The victim terminates: kube-scheduler used the third response.
	at := metav1.NewTime(epoch)
	small1.DeletionTimestamp = &at
	w.feed(append(nodes, big, small1, small2)...)
	if w.countOf(resultDiscarded) != 2 || w.countOf(resultChosen) != 1 {
		t.Errorf("%v discarded and %v chosen, want 2 and 1", w.countOf(resultDiscarded), w.countOf(resultChosen))
	}
}

// Victims that terminate remain leaving for another pod. If a more important pod needs
// no more than their resources, the response names no further victims.
func TestAnswers_NoFurtherVictimsWhileOthersLeave(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	small1, small2 := pod("small1", "n2", "2", 10), pod("small2", "n2", "2", 50)
	w.feed(node("n2"), small1, small2)
	first, equal, higher := pod("first", "", "2", 1000), pod("equal", "", "2", 1000), pod("higher", "", "2", 2000)
	for _, c := range []struct {
		pod  *corev1.Pod
		want string
	}{{first, "n2: small1"}, {equal, "n2: small2"}, {higher, "n2: small2 small1"}} {
		if got := w.preempt("preempt", metaProposalOf(c.pod, map[string][]*corev1.Pod{"n2": {small2, small1}})); got != c.want {
			t.Errorf("%s: got %q, want %q\n%s", c.pod.Name, got, c.want, w.log)
		}
	}
	if w.countOf(resultUnknown) != 0 {
		t.Errorf("%v responses without the policy\n%s", w.countOf(resultUnknown), w.log)
	}
}

// The nominated node passes filter for its pod only, whatever the cache contains.
func TestAnswers_NominatedNodePassesFilter(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	n1 := managed(node("n1"))
	victim, pending := managed(pod("victim", "n1", "4", 0)), managed(pod("pending", "", "4", 1000))
	w.feed(n1, victim)
	rejected := "\nn1: lacks cpu"
	if got := w.filter(pending, n1); got != rejected {
		t.Fatalf("before the preemption: %q, want %q", got, rejected)
	}
	if got, want := w.preempt("preempt", metaProposalOf(pending, map[string][]*corev1.Pod{"n1": {victim}})), "n1: victim"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if got := w.filter(pending, n1); got != "n1" {
		t.Errorf("after the preemption: %q, want n1", got)
	}
	if got := w.filter(managed(pod("other", "", "1", 1000)), n1); got != rejected {
		t.Errorf("for another pod: %q, want %q", got, rejected)
	}
}

// If the feed reports no eviction, the victims count again after the deadline.
func TestAnswers_EndAfterDeadline(t *testing.T) {
	v := clock.NewVirtual(epoch)
	for _, fed := range []bool{true, false} {
		w := start(t, kubernetesPolicy, func(c *Config) { c.Clock, c.EvictionDeadline = v, 10*time.Second })
		nodes, big, small1, small2 := cluster()
		want := resultUnconfirmed
		if fed {
			want = resultDiscarded
			w.feed(append(nodes, big, small1, small2)...)
		}
		proposal := map[string][]*corev1.Pod{"n2": {small1}}
		if got := w.preempt("preempt", proposalOf(pod("first", "", "2", 1000), proposal)); got != "n2: small1" {
			t.Fatalf("got %q", got)
		}
		v.AdvanceTo(v.Now().Add(9 * time.Second))
		w.preempt("preempt", proposalOf(pod("second", "", "2", 1000), map[string][]*corev1.Pod{"n1": {big}}))
		if got := w.countOf(want); got != 0 {
			t.Errorf("fed %t: %v %s before the deadline, want 0", fed, got, want)
		}
		v.AdvanceTo(v.Now().Add(time.Second))
		if got := w.extender.cache.unconfirmed(); got != 1 { // the gauge ends answers too, without a further request
			t.Errorf("fed %t: %d open answers, want that of the second pod", fed, got)
		}
		if got := w.countOf(want); got != 1 {
			t.Errorf("fed %t: %v %s after the deadline, want 1", fed, got, want)
		}
		if slices.Contains(w.extender.cache.leaving(), "uid-small1") {
			t.Errorf("fed %t: the victim is leaving after the deadline", fed)
		}
	}
}

// A server that is never fed stores a bounded number of objects and answers.
func TestAnswers_UnfedServerStoresBoundedObjects(t *testing.T) {
	if soak.Race && !soak.Full() {
		t.Skip("it counts objects in one goroutine: set CEDE_SOAK=1")
	}
	w := start(t, kubernetesPolicy, nil)
	c := w.extender.cache
	for i := range maxObservedPods + 100 {
		p := podOf(t, "same", "", 0)
		p.Metadata.UID = fmt.Sprint(i)
		c.observePods(p)
		c.observeNode(&kube.Node{Metadata: kube.Metadata{Name: fmt.Sprintf("n%d", i)}}, uint64(i))
	}
	if nodes, pods := c.size(); nodes != maxObservedNodes || pods != maxObservedPods {
		t.Errorf("%d nodes and %d pods cached, want %d and %d", nodes, pods, maxObservedNodes, maxObservedPods)
	}
	if c.pods["0"] != nil || c.pods[fmt.Sprint(maxObservedPods+99)] == nil || len(c.hashByNode) != maxObservedNodes || len(c.observedPods.queue) > 2*maxObservedPods {
		t.Errorf("the oldest pods must be dropped, %d node hashes, %d observations", len(c.hashByNode), len(c.observedPods.queue))
	}
	for i := range maxAnswers + 100 {
		_, _, victim, _ := cluster()
		victim.UID += types.UID(fmt.Sprint(i))
		p := pod(fmt.Sprintf("preemptor-%d", i), "", "2", 1000)
		if i < 3 || i > maxAnswers { // the others without a policy, which is slow
			w.preempt("preempt", proposalOf(p, map[string][]*corev1.Pod{"n2": {victim}}))
			continue
		}
		c.recordAnswer(podOf(t, p.Name, "", 1000), nil, &outcome{result: resultAnswered}, false)
	}
	if got := c.unconfirmed(); got != maxAnswers || len(c.answers.byPod) > maxAnswers || len(c.answers.order) > 2*maxAnswers+16 {
		t.Errorf("%d answers open, %d pods, %d in the list, want at most %d", got, len(c.answers.byPod), len(c.answers.order), maxAnswers)
	}
	if !strings.Contains(w.log.String(), "outcome=answered") || w.countOf(resultUnconfirmed) != 100 {
		t.Errorf("%v unconfirmed, want 100", w.countOf(resultUnconfirmed))
	}
}

// The victims of all answers are bounded too, whatever the size of the requests. An answer of
// that size is processed in less than quadratic time.
func TestAnswers_VictimsAreBounded(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	c := w.extender.cache
	const perAnswer = maxVictims / 4
	for i := range 6 {
		v := &kube.MetaVictims{Pods: make([]kube.MetaPod, perAnswer)}
		for k := range v.Pods {
			v.Pods[k].UID = fmt.Sprintf("%d-%d", i, k)
		}
		preemptor := podOf(t, fmt.Sprint("preemptor-", i), "", 1000)
		answer := map[string]*kube.MetaVictims{"n1": v}
		c.recordAnswer(preemptor, answer, &outcome{result: resultAnswered}, false)
		if !isProposed(c.answers.byPod[key(preemptor)], answer) {
			t.Fatal("the victims are not among those of the answer")
		}
	}
	if got := c.unconfirmed(); got != 4 || c.answers.named != maxVictims || len(c.answers.victims) != maxVictims {
		t.Errorf("%d answers with %d victims, want the latest 4 with %d", got, len(c.answers.victims), maxVictims)
	}
	if leaving := c.leaving(); len(leaving) != maxVictims || slices.Contains(leaving, "1-0") {
		t.Errorf("%d pods are leaving, want those of the latest answers", len(leaving))
	}
	tooMany := &kube.MetaVictims{Pods: make([]kube.MetaPod, maxVictims+1)}
	c.recordAnswer(podOf(t, "last", "", 1000), map[string]*kube.MetaVictims{"n1": tooMany}, &outcome{result: resultAnswered}, false)
	if got := c.unconfirmed(); got != 0 || c.answers.named != 0 || len(c.answers.victims) != 0 || len(c.answers.byPod) != 0 {
		t.Errorf("%d answers with %d victims are open, want none", got, c.answers.named)
	}
}

// In a cluster maintained by a watch, objects of requests are not stored: no event
// would remove them.
func TestAnswers_LiveCacheIgnoresObjectsOfRequests(t *testing.T) {
	w := start(t, kubernetesPolicy, func(c *Config) { c.Live = true })
	n1, n2, a := node("n1"), node("n2"), pod("a", "n1", "1", 0)
	w.feed(n1, a)
	stale := tainted(node("n1"), corev1.TaintEffectNoSchedule)
	if got := w.filter(pod("pending", "", "1", 0), stale, n2); got != "n1 n2" {
		t.Errorf("got %q, want the state of the watch", got)
	}
	w.preempt("preempt", proposalOf(pod("pending", "", "1", 1000), map[string][]*corev1.Pod{"n1": {a, pod("deleted", "n1", "1", 0)}}))
	if nodes, pods := w.extender.cache.size(); nodes != 1 || pods != 1 {
		t.Errorf("%d nodes and %d pods cached, want 1 and 1", nodes, pods)
	}
}
