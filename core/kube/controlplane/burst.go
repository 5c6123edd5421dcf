package controlplane

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Burst fills nodes with pods and then creates preemptors at once.
type Burst struct {
	Nodes, PodsPerNode int // a pod requests one CPU, and a node has one for each
	Preemptors         int
	Victims            int // of each preemptor: the CPUs that it requests
	// Skew is the error of the clocks: those of half of the nodes are fast, the others slow.
	Skew time.Duration
}

// A BurstResult reports the effects of a burst.
type BurstResult struct {
	Waits   []time.Duration // from the creation of each preemptor to its binding, sorted
	Evicted int             // pods that were deleted or are being deleted
	Nodes   map[string]string
}

// Quantile returns a quantile of the waits.
func (r *BurstResult) Quantile(q float64) time.Duration {
	return r.Waits[min(len(r.Waits)-1, int(q*float64(len(r.Waits))))]
}

// Fill creates the nodes and their pods. The pods of a node have different priorities
// below 100 and different ages.
func (b Burst) Fill(t testing.TB, c *Cluster) {
	t.Helper()
	nodes := make([]*corev1.Node, b.Nodes)
	var pods []*corev1.Pod
	for n := range nodes {
		nodes[n] = Node(fmt.Sprintf("node-%d", n), fmt.Sprint(b.PodsPerNode))
		for i := range b.PodsPerNode {
			class := c.CreatePriorityClass(t, int32((n+i)%5*10)) //nolint:gosec // G115: at most 40
			p := Pod(fmt.Sprintf("low-%d-%d", n, i), "1", class, nodes[n].Name)
			started := time.Now().Add(-time.Duration(n*17+i*61) * time.Second).Add(b.Skew * time.Duration(1-n%2*2))
			p.Annotations = map[string]string{StartedAnnotation: started.UTC().Format(time.RFC3339)}
			pods = append(pods, p)
		}
	}
	c.CreateNodes(t, nodes...)
	c.CreatePods(t, pods...)
}

// Run creates the preemptors, waits until all are bound, and waits until no more pods are
// evicted. during, if not nil, is called once a quarter of the victims terminate: the
// other preemptors wait for an answer or for their victims.
func (b Burst) Run(t testing.TB, c *Cluster, during func()) *BurstResult {
	t.Helper()
	class := c.CreatePriorityClass(t, 1000)
	var mu sync.Mutex
	r := &BurstResult{Nodes: map[string]string{}}
	created, evicted := map[string]time.Time{}, map[types.UID]bool{}
	underway := make(chan struct{})
	stop := c.Kubelets.Watch(func(old, p *corev1.Pod) {
		gone := p == nil // its termination may have been missed while the API server was away
		if gone {
			p = old
		}
		mu.Lock()
		defer mu.Unlock()
		at, isPreemptor := created[p.Name]
		if !isPreemptor {
			if (gone || p.DeletionTimestamp != nil) && !evicted[p.UID] {
				evicted[p.UID] = true
				if len(evicted) == (b.Preemptors*b.Victims+3)/4 {
					close(underway)
				}
			}
			return
		}
		if p.Spec.NodeName != "" && r.Nodes[p.Name] == "" {
			r.Nodes[p.Name] = p.Spec.NodeName
			r.Waits = append(r.Waits, time.Since(at))
		}
	})
	defer stop()
	pods := make([]*corev1.Pod, b.Preemptors)
	for i := range pods {
		pods[i] = Pod(fmt.Sprintf("high-%d", i), fmt.Sprint(b.Victims), class, "")
	}
	each(t, pods, func(ctx context.Context, p *corev1.Pod) error {
		mu.Lock()
		created[p.Name] = time.Now()
		mu.Unlock()
		return c.createPod(ctx, p)
	})
	if during != nil {
		select {
		case <-underway:
		case <-time.After(2 * time.Minute):
			t.Error("a quarter of the victims are not evicted after 2 minutes")
		}
		during()
	}
	Eventually(t, "all preemptors are bound", func(context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		if n := len(r.Nodes); n < b.Preemptors {
			return fmt.Sprintf("%d of %d are bound, %d pods evicted", n, b.Preemptors, len(evicted))
		}
		return ""
	})
	time.Sleep(2 * time.Second) // evictions that should not be there would follow at once
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(r.Waits)
	r.Evicted = len(evicted)
	return r
}
