package kubernetes

import (
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// A simulatedCluster is a kube-scheduler in this process with an API server that is
// simulated: pods that are deleted are gone at once.
type simulatedCluster struct {
	t      *testing.T
	client *fake.Clientset

	mu      sync.Mutex
	evicted []string
	changed chan struct{} // capacity 1
}

// startCluster starts kube-scheduler with the plugin on a cluster with objects. args are
// the arguments of the plugin.
func startCluster(t *testing.T, args string, objects ...runtime.Object) *simulatedCluster {
	t.Helper()
	c := &simulatedCluster{t: t, client: fake.NewClientset(objects...), changed: make(chan struct{}, 1)}
	c.client.PrependReactor("create", "pods", c.bind)
	c.client.PrependReactor("delete", "pods", c.delete)
	text := `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      disabled: [{name: DefaultPreemption}]
      enabled: [{name: Cede}]
  pluginConfig:
  - name: Cede
    args: ` + args
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context() // cancelled before the cleanup
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.client.EventsV1()})
	informers := scheduler.NewInformerFactory(c.client, 0, nil)
	s, err := scheduler.New(ctx, c.client, informers, nil, profile.NewRecorderFactory(broadcaster),
		scheduler.WithProfiles(decoded.(*config.KubeSchedulerConfiguration).Profiles...), scheduler.WithPodInitialBackoffSeconds(0), scheduler.WithPodMaxBackoffSeconds(0),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{Name: New}))
	if err != nil {
		t.Fatal(err)
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		<-done
		informers.Shutdown()
		broadcaster.Shutdown()
	})
	return c
}

// bind stores the node of a pod.
func (c *simulatedCluster) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	b := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	o, err := c.client.Tracker().Get(pods, action.GetNamespace(), b.Name)
	if err != nil {
		return true, nil, err
	}
	p := o.(*corev1.Pod).DeepCopy()
	p.Spec.NodeName = b.Target.Name
	if err := c.client.Tracker().Update(pods, p, p.Namespace); err != nil {
		return true, nil, err
	}
	return true, b, nil
}

// delete records the eviction of a pod.
func (c *simulatedCluster) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evicted = append(c.evicted, action.(clienttesting.DeleteAction).GetName())
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return false, nil, nil
}

// awaitEvicted waits until as many pods are evicted as are wanted, and returns all that are
// evicted, sorted. It does not wait for the binding of the preemptors: here pods are gone
// before kube-scheduler has queued their preemptors again, which it may then leave for minutes.
func (c *simulatedCluster) awaitEvicted(want string) string {
	c.t.Helper()
	for {
		c.mu.Lock()
		evicted := slices.Compact(slices.Sorted(slices.Values(c.evicted)))
		c.mu.Unlock()
		if len(evicted) >= len(strings.Fields(want)) {
			return strings.Join(evicted, " ")
		}
		<-c.changed
	}
}

func (c *simulatedCluster) create(pods ...*corev1.Pod) {
	c.t.Helper()
	for _, p := range pods {
		if _, err := c.client.CoreV1().Pods(p.Namespace).Create(c.t.Context(), p, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// simulatedNode returns a node of two CPUs.
func simulatedNode(name string) *corev1.Node {
	amounts := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}, Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// simulatedPod returns a pod of one CPU. The first character of its name is unique, so that
// pods of equal priority differ in age.
func simulatedPod(name, node, group string, priority int32) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), ResourceVersion: "1"},
		Spec: corev1.PodSpec{
			NodeName: node, SchedulerName: "default-scheduler", Priority: &priority,
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if node != "" {
		started := metav1.Unix(1_000_000+int64(name[0])*60, 0)
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &started
	}
	if group != "" {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}
	return p
}

// simulatedGroup returns a gang of two pods.
func simulatedGroup(name string, priority int32, together bool) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), ResourceVersion: "1"},
		Spec: schedulingv1beta1.PodGroupSpec{
			Priority:         &priority,
			DisruptionMode:   &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}},
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}},
		},
	}
	if together {
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	return g
}

// kube-scheduler evicts what the policy chooses, for a pod and for a gang, of the pods and of
// the groups that are evicted together.
func TestPlugin_EvictsChoiceOfPolicy(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	two := []runtime.Object{simulatedNode("n1"), simulatedNode("n2")}
	singles := slices.Concat(two, []runtime.Object{
		simulatedPod("a", "n1", "", 5), simulatedPod("b", "n1", "", 50), simulatedPod("c", "n2", "", 10), simulatedPod("d", "n2", "", 2000),
	})
	ring := slices.Concat(two, []runtime.Object{
		simulatedGroup("ring", 5, true), simulatedPod("a", "n1", "ring", 5), simulatedPod("b", "n2", "ring", 5),
		simulatedPod("c", "n1", "", 2000), simulatedPod("d", "n2", "", 2000),
	})
	for name, k := range map[string]struct {
		objects    []runtime.Object
		preemptors []*corev1.Pod
		want       string
	}{
		"pod":                         {singles, []*corev1.Pod{simulatedPod("high", "", "", 1000)}, "a"},
		"pod, group on several nodes": {ring, []*corev1.Pod{simulatedPod("high", "", "", 1000)}, "a b"},
		"gang": {
			append(singles, simulatedGroup("gang", 1000, false)),
			[]*corev1.Pod{simulatedPod("h1", "", "gang", 1000), simulatedPod("h2", "", "gang", 1000)},
			"a c",
		},
		"gang, group on several nodes": {
			append(ring, simulatedGroup("gang", 1000, false)),
			[]*corev1.Pod{simulatedPod("h1", "", "gang", 1000), simulatedPod("h2", "", "gang", 1000)},
			"a b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, "{policy: kubernetes}", k.objects...)
			c.create(k.preemptors...)
			if got := c.awaitEvicted(k.want); got != k.want {
				t.Errorf("evicted %q, want %q", got, k.want)
			}
		})
	}
}

// A policy that allows no eviction protects pods from gangs as well.
func TestPlugin_PolicyDecidesForGang(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	young := simulatedPod("a", "n1", "", 5)
	now := metav1.Now()
	young.Status.StartTime = &now
	c := startCluster(t, "{policy: protect, policyConfig: {minRuntime: 10h}}", simulatedNode("n1"), simulatedNode("n2"),
		young, simulatedPod("b", "n1", "", 50), simulatedPod("c", "n2", "", 70), simulatedPod("d", "n2", "", 60),
		simulatedGroup("gang", 1000, false))
	c.create(simulatedPod("h1", "", "gang", 1000), simulatedPod("h2", "", "gang", 1000))
	if got := c.awaitEvicted("b d"); got != "b d" {
		t.Errorf("evicted %q, want %q: the pod that started just now is protected", got, "b d")
	}
}
