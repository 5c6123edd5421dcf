package watch

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/apiservertest"
	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

type onePolicy struct{ set *policy.Set }

func (p onePolicy) Pin() *policy.Set { return p.set.Pin() }

// processorTime returns the processor time of the process, which includes the test API
// server.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for invalid arguments only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// countingSink counts the changes that arrive.
type countingSink struct {
	Sink
	changes atomic.Int64
}

func (s *countingSink) Feed(d *kube.Dump, whole bool) {
	s.Sink.Feed(d, whole)
	if !whole {
		s.changes.Add(1)
	}
}

// A followedCluster is a cluster of 5,000 nodes with 50,000 pods that an extender
// follows through a watch.
type followedCluster struct {
	server   *apiservertest.Server
	pods     []*corev1.Pod
	extender *extender.Extender
	sink     *countingSink
	changes  int
	// ready is the time until the watch was ready, and heap the growth of the heap in
	// bytes, the objects of the test API server included.
	ready time.Duration
	heap  uint64
}

func newFollowedCluster(b *testing.B) *followedCluster {
	b.Helper()
	const nodes, perNode = 5000, 10
	v, err := policy.NewVersion(policy.Source{Name: "default", Module: policy.Native(policy.BuiltinDigest("kubernetes", "test"), func() sdk.Policy { return kubernetes.New() })})
	if err != nil {
		b.Fatal(err)
	}
	set, err := policy.NewSet(v)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(set.Unpin)
	c := &followedCluster{server: apiservertest.New()}
	if c.extender, err = extender.New(extender.Config{Policies: onePolicy{set}, Live: true, Deadline: time.Minute}); err != nil {
		b.Fatal(err)
	}
	started := metav1.NewTime(time.Now().Add(-time.Hour)) // kubelets report it
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		c.server.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("10")}}})
		for k := range perNode {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d-%d", i, k), Namespace: "default"}, Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{
				Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			}}}}
			p.UID = types.UID(p.Name)
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started}
			c.server.Put(p)
			c.pods = append(c.pods, p)
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	c.sink = &countingSink{Sink: c.extender}
	w := start(b, c.server, c.sink)
	eventually(b, func() string {
		if err := w.Ready(); err != nil {
			return err.Error()
		}
		return ""
	})
	c.ready = time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	c.heap = after.HeapAlloc - before.HeapAlloc
	return c
}

// change changes a pod.
func (c *followedCluster) change() {
	p := c.pods[c.changes%len(c.pods)]
	p.Labels = map[string]string{"v": fmt.Sprint(c.changes)}
	c.server.Put(p)
	c.changes++
}

// BenchmarkWatch measures the time until the watch is ready, the heap afterwards, and the
// processor time of 100 changes of pods.
func BenchmarkWatch(b *testing.B) {
	c := newFollowedCluster(b)
	from, earlier := processorTime(), c.sink.changes.Load()
	for b.Loop() {
		for range 100 {
			c.change()
		}
	}
	eventually(b, func() string {
		if n := c.sink.changes.Load() - earlier; n < int64(c.changes) {
			return fmt.Sprintf("%d of %d changes arrived", n, c.changes)
		}
		return ""
	})
	b.ReportMetric(c.ready.Seconds(), "s-to-ready")
	b.ReportMetric(float64(c.heap)/(1<<20), "MiB-heap")
	b.ReportMetric(float64((processorTime()-from).Microseconds())/float64(c.changes)*100, "cpu-us/100events")
}

// BenchmarkPreemptDuringEvents measures preempt calls, one after another, while 100 changes
// of pods arrive each second. Of 5,000 nodes, kube-scheduler proposes 500 unless it is
// configured otherwise. The first call is reported separately. The processor time of a call
// includes that of the changes during it, and depends less on the load of the machine than
// its duration.
func BenchmarkPreemptDuringEvents(b *testing.B) {
	for _, proposed := range []int{100, 500} {
		b.Run(fmt.Sprintf("proposed=%d", proposed), func(b *testing.B) { benchmarkPreempt(b, proposed) })
	}
}

func benchmarkPreempt(b *testing.B, proposed int) {
	c := newFollowedCluster(b)
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			c.change()
		}
	})
	defer running.Wait()
	defer cancel()
	calls := 0
	call := func() time.Duration {
		pod := &kube.Pod{Metadata: kube.Metadata{Name: fmt.Sprintf("high-%d", calls), Namespace: "default", UID: fmt.Sprintf("high-%d", calls)}}
		pod.Spec.Priority = new(int32(1000))
		pod.Spec.Containers = []kube.Container{{Name: "c", Resources: kube.ResourceRequirements{Requests: kube.ResourceList{"cpu": "1"}}}}
		args := &kube.ExtenderPreemptionArgs{Pod: pod, NodeNameToMetaVictims: map[string]*kube.MetaVictims{}}
		for k := range proposed {
			node, victim := (calls*proposed+k)%5000, calls*proposed/5000%10
			args.NodeNameToMetaVictims[fmt.Sprintf("node-%05d", node)] = &kube.MetaVictims{Pods: []kube.MetaPod{{UID: fmt.Sprintf("pod-%05d-%d", node, victim)}}}
		}
		calls++
		from := time.Now()
		if out := c.extender.Preempt(ctx, args, extender.PreemptOptions{}); len(out.NodeNameToMetaVictims) != 1 {
			b.Fatalf("%d nodes in the response", len(out.NodeNameToMetaVictims))
		}
		return time.Since(from)
	}
	first := call()
	var times []time.Duration
	from := processorTime()
	for b.Loop() {
		times = append(times, call())
	}
	used := processorTime() - from
	slices.Sort(times)
	b.ReportMetric(first.Seconds(), "s-first")
	b.ReportMetric(float64(times[len(times)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100])/1e6, "p99-ms")
	b.ReportMetric(float64(used)/1e6/float64(len(times)), "cpu-ms/call")
}
