package extender

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// town is a small cluster that changes at random, with whatever one pod can want of
// others and of nodes.
type town struct {
	r     *rand.Rand
	nodes []*corev1.Node
	pods  []*corev1.Pod
	next  int
}

func newTown(seed uint64) *town {
	c := &town{r: rand.New(rand.NewPCG(seed, 1))}
	for i := range 6 {
		n := node(fmt.Sprintf("%c%d", "ab"[i%2], i))
		n.Status.Allocatable["example.com/card"] = resource.MustParse("2")
		c.nodes = append(c.nodes, n)
	}
	for range 12 {
		c.pods = append(c.pods, c.pod(c.someNode()))
	}
	return c
}

func (c *town) someNode() string { return c.nodes[c.r.IntN(len(c.nodes))].Name }

// pod is one of four apps, of two versions each.
func (c *town) pod(on string) *corev1.Pod {
	c.next++
	app, version := fmt.Sprintf("app-%d", c.r.IntN(4)), fmt.Sprintf("v%d", c.r.IntN(2))
	p := pod(fmt.Sprintf("p-%d", c.next), on, []string{"500m", "1", "2"}[c.r.IntN(3)], []int32{0, 10}[c.r.IntN(2)])
	p.Labels = map[string]string{"app": app, "pod-template-hash": version, "batch.kubernetes.io/job-completion-index": fmt.Sprint(c.r.IntN(3))}
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app + "-" + version, Controller: new(true)}}
	one := &p.Spec.Containers[0]
	term := func(key string, expressions ...metav1.LabelSelectorRequirement) []corev1.PodAffinityTerm {
		return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", c.r.IntN(4))}, MatchExpressions: expressions,
		}}}
	}
	switch c.r.IntN(12) {
	case 0:
		one.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	case 1:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("kubernetes.io/hostname")}}
	case 2:
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("zone")}}
	case 3:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("zone",
			metav1.LabelSelectorRequirement{Key: "pod-template-hash", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"v1"}})}}
	case 4:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("kubernetes.io/hostname",
			metav1.LabelSelectorRequirement{Key: "batch.kubernetes.io/job-completion-index", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}})}}
	case 5:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}}
	case 6:
		one.Resources.Requests["example.com/card"] = resource.MustParse("1")
	case 7:
		one.Resources.Requests["example.com/unheard-of"] = resource.MustParse("1")
	case 8:
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}},
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{c.someNode()}}}},
		}}}}
	case 9:
		one.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: corev1.ProtocolUDP}}
	}
	if on == "" && c.r.IntN(3) == 0 {
		p.Status.NominatedNodeName = c.someNode()
	}
	return p
}

// event is what a watch tells.
func event(kind string, object any) []byte {
	text, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		panic(err)
	}
	return text
}

// change changes something, and returns what a watch would tell of it.
func (c *town) change() []byte {
	i := c.r.IntN(len(c.pods))
	switch c.r.IntN(10) {
	case 0, 1, 2:
		p := c.pod(c.someNode())
		c.pods = append(c.pods, p)
		return event("ADDED", p)
	case 3, 4, 5:
		if len(c.pods) > 3 {
			gone := c.pods[i]
			c.pods = append(c.pods[:i:i], c.pods[i+1:]...)
			return event("DELETED", gone)
		}
	case 6:
		p := c.pod("")
		c.pods = append(c.pods, p)
		return event("ADDED", p)
	case 7:
		moved := c.pods[i].DeepCopy()
		moved.Spec.NodeName, moved.Status.NominatedNodeName = c.someNode(), ""
		c.pods[i] = moved
		return event("MODIFIED", moved)
	case 8:
		other := c.pods[i].DeepCopy()
		other.Labels["app"] = fmt.Sprintf("app-%d", c.r.IntN(4))
		c.pods[i] = other
		return event("MODIFIED", other)
	case 9:
		n := c.nodes[c.r.IntN(len(c.nodes))].DeepCopy()
		n.Spec.Unschedulable = !n.Spec.Unschedulable
		for k := range c.nodes {
			if c.nodes[k].Name == n.Name {
				c.nodes[k] = n
			}
		}
		return event("MODIFIED", n)
	}
	return event("BOOKMARK", map[string]any{"kind": "Pod"})
}

func (c *town) objects() (all []any) {
	for _, n := range c.nodes {
		all = append(all, n)
	}
	for _, p := range c.pods {
		all = append(all, p)
	}
	return all
}

// What follows a cluster from change to change says of every pod what it would say
// had it been told of the whole cluster just now; told once more of all of it, too.
func TestStanding_FollowsAsIfItWereMadeAnew(t *testing.T) {
	anew := 0
	for seed := range uint64(4) {
		c := newTown(seed)
		w := start(t, kubePolicy, nil)
		w.feed(c.objects()...)
		for step := range 25 {
			if step%8 == 7 {
				w.feed(c.objects()...)
			} else if status, text := w.raw(http.MethodPut, "objects", c.change()); status != http.StatusOK {
				t.Fatalf("%d %s", status, text)
			}
			asker := c.pod("")
			before := w.extender.standing.roster
			got, scored := w.filter(asker, c.nodes...), w.scores(asker, c.nodes...)
			if w.extender.standing.roster != before {
				anew++
			}
			other := start(t, kubePolicy, nil)
			other.feed(c.objects()...)
			want, expected := other.filter(asker, c.nodes...), other.scores(asker, c.nodes...)
			for _, told := range []*string{&got, &want} { // which protocol keeps the number is told by who came first
				*told = strings.ReplaceAll(*told, "port 65535", "port 80")
			}
			if got != want || fmt.Sprint(scored) != fmt.Sprint(expected) {
				asked, _ := json.Marshal(asker)
				t.Fatalf("seed %d, step %d: followed\n%s %v\nanew\n%s %v\n%s", seed, step, got, scored, want, expected, asked)
			}
			if step%2 == 0 {
				c.pods = append(c.pods, asker)
			} else if status, text := w.raw(http.MethodPut, "objects", event("DELETED", asker)); status != http.StatusOK {
				t.Fatalf("%d %s", status, text)
			}
		}
	}
	if share := float64(anew) / 100; share > 0.7 {
		t.Errorf("in %.0f %% of the steps everything was made anew", 100*share)
	} else {
		t.Logf("in %.0f %% of the steps everything was made anew", 100*share)
	}
}

// A pod of a Deployment that is being changed is judged by what it wants, not by what
// the version before it does.
func TestFilter_JudgesThePodOfARollout(t *testing.T) {
	w := start(t, kubePolicy, nil)
	n1, n2 := node("n1"), node("n2")
	version := func(name, on, cpu, hash string) *corev1.Pod {
		p := pod(name, on, cpu, 0)
		p.Labels = map[string]string{"app": "web", "pod-template-hash": hash}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-" + hash, Controller: new(true)}}
		return p
	}
	w.feed(n1, n2, version("old", "n1", "1", "aaaa"))
	if got := w.filter(version("new", "", "4", "bbbb"), n1, n2); !strings.HasPrefix(got, "n2\nn1: lacks cpu") {
		t.Errorf("got\n%s", got)
	}
}

// Being told the same once more, and that nodes are alive, changes nothing; that one is
// cordoned does.
func TestStanding_StaysWhereNothingChanged(t *testing.T) {
	w := start(t, kubePolicy, nil)
	n1, n2, asker := node("n1"), node("n2"), pod("asker", "", "1", 0)
	all := []any{n1, n2, pod("a", "n1", "1", 0)}
	w.feed(all...)
	w.filter(asker, n1, n2)
	roster := w.extender.standing.roster
	beat := n2.DeepCopy()
	beat.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.NewTime(epoch)}}
	w.feed(n1, beat, pod("a", "n1", "1", 0))
	w.filter(asker, n1, beat)
	if roster == w.extender.standing.roster {
		t.Error("a condition that came was missed")
	}
	roster = w.extender.standing.roster
	beat = beat.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(epoch.Add(time.Hour))
	w.feed(n1, beat, pod("a", "n1", "1", 0), pod("b", "n2", "4", 0))
	if got := w.filter(asker, n1, beat); got != "n1\nn2: lacks cpu" {
		t.Errorf("got\n%s", got)
	}
	if roster != w.extender.standing.roster {
		t.Error("made anew for a heartbeat and a pod")
	}
	cordoned := n1.DeepCopy()
	cordoned.Spec.Unschedulable = true
	if got := w.filter(asker, cordoned, beat); !strings.Contains(got, "n1: for good: taint node.kubernetes.io/unschedulable") {
		t.Errorf("got\n%s", got)
	}
}

// One object that is not as its kind is keeps nothing else from being taken over; what
// was known of it stays. What cannot be read to its end changes nothing.
func TestObjects_TakesTheRest(t *testing.T) {
	w := start(t, kubePolicy, nil)
	n1, n2, asker := node("n1"), node("n2"), pod("asker", "", "1", 0)
	w.feed(n1, pod("a", "n1", "4", 0))
	bad := `{"kind":"Pod","metadata":{"name":"a","namespace":"default"},"spec":7}`
	text, err := json.Marshal(n2)
	if err != nil {
		t.Fatal(err)
	}
	one, err := json.Marshal(n1)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := w.raw(http.MethodPut, "objects?replace=true", []byte(string(one)+bad+string(text)))
	if want := `{"Nodes":2,"Pods":1,"Unread":1,"First":["line 1: Pod default/a: spec is a number, which it cannot be"]}`; status != http.StatusOK || strings.TrimSpace(answer) != want {
		t.Errorf("%d %s, want %s", status, answer, want)
	}
	if got := w.filter(asker, n1, n2); got != "n2\nn1: lacks cpu" {
		t.Errorf("got\n%s", got)
	}
	for _, refused := range []string{bad, string(text) + `{"kind":"Node","metadata":`} {
		if status, answer := w.raw(http.MethodPut, "objects?replace=true", []byte(refused)); status != http.StatusBadRequest {
			t.Errorf("%d %s", status, answer)
		}
	}
	if nodes, pods := w.extender.cache.size(); nodes != 2 || pods != 2 { // the asker is known by now
		t.Errorf("%d nodes and %d pods are known", nodes, pods)
	}
}
