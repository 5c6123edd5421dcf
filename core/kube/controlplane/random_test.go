package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// In random cases, the policy kubernetes chooses the node and the victims that
// kube-scheduler chooses. CEDE_CASES is the number of cases, CEDE_SEED the first seed.
func TestRandom_PolicyChoosesAsKubeScheduler(t *testing.T) {
	count, first := setting(t, "CEDE_CASES", 800), uint64(setting(t, "CEDE_SEED", 1))
	if testing.Short() {
		count = setting(t, "CEDE_CASES", 20)
	}
	const batch = 20
	c := clusterWithPodGroups(t)
	cede := cede(t)
	agree, unasked, differ := 0, 0, 0
	explained := map[string]int{} // differences by rule
	for from := 0; from < count; from += batch {
		var cases []*Case
		for i := range min(batch, count-from) {
			cases = append(cases, RandomCase(first+uint64(from+i)))
		}
		results := c.playCases(t, cede, cases)
		for _, k := range cases {
			r := results[k.Name]
			switch {
			case !r.asked:
				unasked++
			case victimsOf(r.stock) != victimsOf(r.extender) && k.differs(r) != "":
				explained[k.differs(r)]++
				t.Logf("seed %d: kube-scheduler chose %s, the policy chose %s: %s", k.Seed, k.named(r.stock), k.named(r.extender), k.differs(r))
			case victimsOf(r.stock) != victimsOf(r.extender):
				differ++
				t.Errorf("seed %d: kube-scheduler chose %s\nthe policy chose %s\nproposals:\n%s\n%s", k.Seed, k.named(r.stock), k.named(r.extender), k.named(r.proposals), k)
			default:
				agree++
			}
		}
		c.Reset(t)
	}
	t.Logf("%d cases agree, %d differ by a rule %v, %d otherwise; in %d no eviction helps or none is necessary", agree, sum(explained), explained, differ, unasked)
	if agree < count/2 || sum(explained) > count/10 {
		t.Errorf("of %d cases only %d agree: the generator has lost them", count, agree)
	}
}

// differs returns the rule by which the policy may choose otherwise than kube-scheduler,
// as stated in policies/kubernetes/README.md, or "". A rule applies only if the case has
// what the rule is about.
func (k *Case) differs(r caseResult) string {
	if len(k.Preemptor.Spec.TopologySpreadConstraints) > 0 {
		return "spread constraints count the pods of the preemptor's own group"
	}
	for proposal := range strings.SplitSeq(r.proposals, "\n") {
		if proposal != r.extender && victimsOf(proposal) == victimsOf(r.extender) {
			return "kube-scheduler charges candidates that it puts back to their budgets"
		}
	}
	return k.groupRule()
}

// groupRule returns the rule on pod groups that applies to the case, or "".
func (k *Case) groupRule() string {
	nodes, equal, differ := map[string]map[string]bool{}, false, false
	for _, g := range k.Groups {
		nodes[g.Name] = map[string]bool{}
		for _, p := range k.Pods {
			switch {
			case groupOf(p) == g.Name:
				nodes[g.Name][p.Spec.NodeName] = true
				differ = differ || p.Spec.PriorityClassName != g.Spec.PriorityClassName
			case k.priorityOf(p) == g.Spec.PriorityClassName:
				equal = true
			}
		}
		if g.Spec.DisruptionMode.All != nil && len(nodes[g.Name]) > 1 {
			return "the policy evicts no group that has pods on several nodes"
		}
	}
	if k.hasGroupUnderBudget() {
		return "kube-scheduler charges a group to budgets as a whole"
	}
	if differ {
		return "kube-scheduler compares nodes by the priorities of pods, even if their group has another"
	}
	if equal {
		return "of equal priorities, kube-scheduler keeps groups rather than pods"
	}
	return ""
}

// hasGroupUnderBudget reports whether a budget selects a pod of a group that is evicted as a
// whole.
func (k *Case) hasGroupUnderBudget() bool {
	for _, g := range k.Groups {
		for _, p := range k.Pods {
			if g.Spec.DisruptionMode.All != nil && groupOf(p) == g.Name && slices.ContainsFunc(k.Budgets, func(b *policyv1.PodDisruptionBudget) bool {
				return b.Spec.Selector.MatchLabels[appLabel] == p.Labels[appLabel]
			}) {
				return true
			}
		}
	}
	return false
}

// priorityOf returns the class of a pod's group, or of the pod.
func (k *Case) priorityOf(p *corev1.Pod) string {
	for _, g := range k.Groups {
		if g.Name == groupOf(p) {
			return g.Spec.PriorityClassName
		}
	}
	return p.Spec.PriorityClassName
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// victimsOf returns a choice without its number of violations, which kube-scheduler counts
// differently.
func victimsOf(choice string) string {
	victims, _, _ := strings.Cut(choice, " (")
	return victims
}

type caseResult struct {
	asked           bool
	stock, extender string
	proposals       string
}

// createCases creates the objects of cases, except their preemptors.
func (c *Cluster) createCases(t *testing.T, cases []*Case) {
	t.Helper()
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	var budgets []*policyv1.PodDisruptionBudget
	var groups []*schedulingv1beta1.PodGroup
	for _, k := range cases {
		nodes, pods, budgets, groups = append(nodes, k.Nodes...), append(pods, k.Pods...), append(budgets, k.Budgets...), append(groups, k.Groups...)
		for _, value := range k.Classes {
			c.CreatePriorityClass(t, value)
		}
	}
	c.CreateNodes(t, nodes...)
	each(t, groups, c.createPodGroup)
	c.CreatePods(t, pods...)
	// Afterwards: of several budgets for a pod, the controller updates one when the pod changes.
	each(t, budgets, func(ctx context.Context, b *policyv1.PodDisruptionBudget) error {
		_, err := c.Client.PolicyV1().PodDisruptionBudgets(b.Namespace).Create(ctx, b, metav1.CreateOptions{})
		return err
	})
	c.nameVictims(t, cases)
	c.awaitBudgets(t, cases)
}

// preemptorsOf returns the preemptors of cases.
func preemptorsOf(cases []*Case) (list []*corev1.Pod) {
	for _, k := range cases {
		list = append(list, k.Preemptor)
	}
	return list
}

// playCases creates the objects of cases, then their preemptors, and returns the choices of
// kube-scheduler and of the policy.
func (c *Cluster) playCases(t *testing.T, cede string, cases []*Case) map[string]caseResult {
	t.Helper()
	c.createCases(t, cases)
	e := c.StartCede(t, Cede{Path: cede, Policy: "kubernetes"})
	defer e.Stop()
	shadow := StartShadow(t, e)
	s := c.StartScheduler(t, Scheduler{Name: "scheduler", Config: ExtenderConfig(shadow.URL(), true, "preemptVerb: preempt")})
	defer s.Stop()

	var mu sync.Mutex
	nominated, tried := map[string]string{}, map[string]bool{}
	stop := c.Kubelets.Watch(func(_, p *corev1.Pod) {
		if p == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if node := p.Status.NominatedNodeName; node != "" && nominated[p.Name] == "" {
			nominated[p.Name] = node
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				tried[p.Name] = true
			}
		}
	})
	defer stop()
	c.CreatePods(t, preemptorsOf(cases)...)
	results := map[string]caseResult{}
	Eventually(t, "kube-scheduler has decided", func(context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		for _, k := range cases {
			stock, extender, asked := shadow.Compare(k.Preemptor.Name, nominated[k.Preemptor.Name])
			if asked && stock == "" || !asked && !tried[k.Preemptor.Name] {
				return fmt.Sprintf("seed %d: asked %t", k.Seed, asked)
			}
			results[k.Name] = caseResult{asked, stock, extender, shadow.Proposals(k.Preemptor.Name)}
		}
		return ""
	})
	return results
}

// In random cases, kube-scheduler with the plugin evicts the pods that it evicts without.
// CEDE_CASES is the number of cases, CEDE_SEED the first seed.
func TestRandom_PluginEvictsAsKubeScheduler(t *testing.T) {
	if testing.Short() {
		t.Skip("building the plugin takes as long as building Kubernetes")
	}
	count, first := setting(t, "CEDE_CASES", 200), uint64(setting(t, "CEDE_SEED", 1))
	const batch = 20
	c := clusterWithPodGroups(t)
	agree, none := 0, 0
	explained := map[string]int{} // differences by rule
	for from := 0; from < count; from += batch {
		var cases []*Case
		for i := range min(batch, count-from) {
			cases = append(cases, RandomCase(first+uint64(from+i)))
		}
		stock := c.playEvictions(t, cases, Scheduler{Name: "scheduler-stock"})
		plugin := c.playEvictions(t, cases, Scheduler{Name: "scheduler-plugin", Path: plugin(t), Config: PluginConfig("kubernetes")})
		for _, k := range cases {
			rule := k.differs(caseResult{stock: stock[k.Name], extender: plugin[k.Name]})
			switch {
			case stock[k.Name] == plugin[k.Name] && stock[k.Name] == "":
				none++
			case stock[k.Name] == plugin[k.Name]:
				agree++
			case rule != "":
				explained[rule]++
				t.Logf("seed %d: kube-scheduler evicts %q, the plugin %q: %s", k.Seed, stock[k.Name], plugin[k.Name], rule)
			default:
				t.Errorf("seed %d: kube-scheduler evicts %q, the plugin %q\n%s", k.Seed, stock[k.Name], plugin[k.Name], k)
			}
		}
	}
	t.Logf("%d cases agree, %d differ by a rule %v; in %d no eviction helps or none is necessary", agree, sum(explained), explained, none)
	if agree < count/2 {
		t.Errorf("of %d cases only %d agree: the generator has lost them", count, agree)
	}
}

// playEvictions plays cases with a scheduler, and returns the names of the evicted pods of
// each. It leaves the cluster empty.
func (c *Cluster) playEvictions(t *testing.T, cases []*Case, o Scheduler) map[string]string {
	t.Helper()
	defer c.Reset(t)
	c.createCases(t, cases)
	var mu sync.Mutex
	evicted, ended := map[string]map[string]bool{}, map[string]bool{}
	stop := c.Kubelets.Watch(func(old, p *corev1.Pod) {
		gone := p == nil
		if gone {
			p = old
		}
		mu.Lock()
		defer mu.Unlock()
		name := p.Labels[caseLabel]
		switch {
		case gone || p.DeletionTimestamp != nil:
			if evicted[name] == nil {
				evicted[name] = map[string]bool{}
			}
			evicted[name][p.Name] = true
		case strings.HasSuffix(p.Name, "-high"):
			ended[name] = p.Spec.NodeName != "" || isHopeless(p)
		}
	})
	defer stop()
	s := c.StartScheduler(t, o)
	defer s.Stop()
	c.CreatePods(t, preemptorsOf(cases)...)
	results := map[string]string{}
	Eventually(t, "all preemptors are bound or hopeless", func(context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		for _, k := range cases {
			if !ended[k.Name] {
				return k.Preemptor.Name
			}
		}
		return ""
	})
	mu.Lock()
	defer mu.Unlock()
	for _, k := range cases {
		results[k.Name] = strings.Join(slices.Sorted(maps.Keys(evicted[k.Name])), " ")
	}
	return results
}

// isHopeless reports whether kube-scheduler has found no eviction that helps a pod.
func isHopeless(p *corev1.Pod) bool {
	return p.Status.NominatedNodeName == "" && slices.ContainsFunc(p.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse
	})
}

// nameVictims stores the UIDs of the pods in the cases.
func (c *Cluster) nameVictims(t *testing.T, cases []*Case) {
	t.Helper()
	list, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range cases {
		for _, p := range k.Pods {
			for i := range list.Items {
				if list.Items[i].Name == p.Name {
					p.UID = list.Items[i].UID
				}
			}
		}
	}
}

// awaitBudgets waits until the controller has counted the pods of each budget.
func (c *Cluster) awaitBudgets(t *testing.T, cases []*Case) {
	t.Helper()
	Eventually(t, "budgets are counted", func(ctx context.Context) string {
		for _, k := range cases {
			for _, b := range k.Budgets {
				now, err := c.Client.PolicyV1().PodDisruptionBudgets(b.Namespace).Get(ctx, b.Name, metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				matching := int32(0)
				for _, p := range k.Pods {
					if p.Labels[appLabel] == b.Spec.Selector.MatchLabels[appLabel] {
						matching++
					}
				}
				if now.Status.ObservedGeneration == 0 || now.Status.CurrentHealthy != matching {
					return fmt.Sprintf("%s has %d of %d pods", b.Name, now.Status.CurrentHealthy, matching)
				}
				b.Status = now.Status
			}
		}
		return ""
	})
}

// named replaces UIDs by names.
func (k *Case) named(text string) string {
	for _, p := range k.Pods {
		text = strings.ReplaceAll(text, string(p.UID), p.Name)
	}
	return text
}

// groupOf returns the name of a pod's group, or "".
func groupOf(p *corev1.Pod) string {
	if p.Spec.SchedulingGroup == nil || p.Spec.SchedulingGroup.PodGroupName == nil {
		return ""
	}
	return *p.Spec.SchedulingGroup.PodGroupName
}

// String lists the objects of a case.
func (k *Case) String() string {
	var b strings.Builder
	line := func(p *corev1.Pod) {
		requests := p.Spec.Containers[0].Resources.Requests
		fmt.Fprintf(&b, "  %s: node %s, %s, cpu %s, memory %s, %s, started %s, group %s\n", p.Name, p.Spec.NodeName, p.Spec.PriorityClassName, requests.Cpu(), requests.Memory(), p.Labels[appLabel], p.Annotations[StartedAnnotation], groupOf(p))
	}
	for _, n := range k.Nodes {
		fmt.Fprintf(&b, "  node %s: cpu %s, memory %s, %v, taints %v\n", n.Name, n.Status.Allocatable.Cpu(), n.Status.Allocatable.Memory(), n.Labels, n.Spec.Taints)
	}
	for _, p := range k.Pods {
		line(p)
	}
	for _, g := range k.Groups {
		fmt.Fprintf(&b, "  group %s: %s, all %t\n", g.Name, g.Spec.PriorityClassName, g.Spec.DisruptionMode.All != nil)
	}
	for _, budget := range k.Budgets {
		fmt.Fprintf(&b, "  budget %s: at least %s of %v, allows %d\n", budget.Name, budget.Spec.MinAvailable, budget.Spec.Selector.MatchLabels, budget.Status.DisruptionsAllowed)
	}
	line(k.Preemptor)
	fmt.Fprintf(&b, "  affinity %v, tolerations %v, spread %v", k.Preemptor.Spec.Affinity, k.Preemptor.Spec.Tolerations, k.Preemptor.Spec.TopologySpreadConstraints)
	return b.String()
}
