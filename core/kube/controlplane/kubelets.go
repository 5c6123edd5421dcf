package controlplane

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// StartedAnnotation is the annotation of a pod with the start time that its kubelet reports,
// in RFC 3339: a pod can be older than the cluster, or on a node whose clock is wrong.
const StartedAnnotation = "controlplane.cede/started"

// Kubelets imitates the reports of kubelets without running containers: pods that are bound
// become Running, pods that are deleted end after a while, and leases of nodes are
// renewed.
type Kubelets struct {
	client kubernetes.Interface
	busy   chan struct{} // one element for each request in progress
	ctx    context.Context
	wait   sync.WaitGroup

	mu       sync.Mutex
	grace    time.Duration
	nodes    map[string]bool
	started  map[types.UID]bool
	ended    map[types.UID]bool
	watchers map[int]func(old, now *corev1.Pod)
	next     int
}

// DefaultGrace is the time that a deleted pod takes to end unless SetGrace sets another one.
const DefaultGrace = 200 * time.Millisecond

// startKubelets starts the kubelets of all nodes, until the test ends.
func startKubelets(t testing.TB, client kubernetes.Interface) *Kubelets {
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kubelets{
		client: client, busy: make(chan struct{}, 16), ctx: ctx, grace: DefaultGrace, nodes: map[string]bool{},
		started: map[types.UID]bool{}, ended: map[types.UID]bool{}, watchers: map[int]func(old, now *corev1.Pod){},
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.podChanged(nil, o) },
		UpdateFunc: k.podChanged,
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			k.notify(o.(*corev1.Pod), nil)
		},
	}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	k.wait.Go(k.renewLeases)
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		k.wait.Wait()
	})
	return k
}

// SetGrace sets the time that a deleted pod takes to end, unless its own grace period is
// shorter.
func (k *Kubelets) SetGrace(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.grace = d
}

// Watch calls changed for each change of a pod, old or now being nil at its creation or
// end, until stop is called.
func (k *Kubelets) Watch(changed func(old, now *corev1.Pod)) (stop func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := k.next
	k.next++
	k.watchers[id] = changed
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.watchers, id)
	}
}

func (k *Kubelets) notify(old, now *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, changed := range k.watchers {
		changed(old, now)
	}
}

func (k *Kubelets) podChanged(old, now any) {
	before, _ := old.(*corev1.Pod)
	p := now.(*corev1.Pod)
	k.notify(before, p)
	if p.Spec.NodeName == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodPending && !k.started[p.UID] {
		k.started[p.UID] = true
		k.wait.Go(func() { k.request(func() error { return k.run(p) }) })
	}
	if p.DeletionTimestamp != nil && !k.ended[p.UID] {
		k.ended[p.UID] = true
		grace := k.grace
		if s := p.DeletionGracePeriodSeconds; s != nil {
			grace = min(grace, time.Duration(*s)*time.Second)
		}
		k.wait.Go(func() {
			select {
			case <-time.After(grace):
				k.request(func() error { return k.end(p) })
			case <-k.ctx.Done():
			}
		})
	}
}

// request repeats a request until it succeeds: the API server may be away for a while.
func (k *Kubelets) request(send func() error) {
	for {
		select {
		case k.busy <- struct{}{}:
		case <-k.ctx.Done():
			return
		}
		err := send()
		<-k.busy
		if err == nil {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-k.ctx.Done():
			return
		}
	}
}

// run reports a pod as running.
func (k *Kubelets) run(p *corev1.Pod) error {
	started := time.Now().UTC().Format(time.RFC3339)
	if at := p.Annotations[StartedAnnotation]; at != "" {
		started = at
	}
	patch := fmt.Sprintf(`{"status":{"phase":"Running","startTime":%q,"conditions":[{"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True"}]}}`, started)
	_, err := k.client.CoreV1().Pods(p.Namespace).Patch(k.ctx, p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return unlessGone(err)
}

// end removes a pod that was deleted.
func (k *Kubelets) end(p *corev1.Pod) error {
	var now int64
	return unlessGone(k.client.CoreV1().Pods(p.Namespace).Delete(k.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID}}))
}

const leaseNamespace = "kube-node-lease"

// register creates the lease of a node.
func (k *Kubelets) register(ctx context.Context, node string) error {
	now, seconds := metav1.NowMicro(), int32(40)
	_, err := k.client.CoordinationV1().Leases(leaseNamespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: leaseNamespace},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodes[node] = true
	return unlessPresent(err)
}

// unregister ends the renewal of a node's lease.
func (k *Kubelets) unregister(node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.nodes, node)
}

// renewLeases renews the lease of each node every 10 seconds.
func (k *Kubelets) renewLeases() {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-k.ctx.Done():
			return
		}
		k.mu.Lock()
		var nodes []string
		for node := range k.nodes {
			nodes = append(nodes, node)
		}
		k.mu.Unlock()
		patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
		for _, node := range nodes {
			// A lease that is not renewed this time is renewed the next time.
			_, _ = k.client.CoordinationV1().Leases(leaseNamespace).Patch(k.ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		}
	}
}
