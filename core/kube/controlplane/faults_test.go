package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// faultBurst is the burst during which faults happen.
func faultBurst() Burst {
	if testing.Short() {
		return Burst{Nodes: 12, PodsPerNode: 10, Preemptors: 6, Victims: 2}
	}
	return Burst{Nodes: 60, PodsPerNode: 10, Preemptors: 20, Victims: 2}
}

// checkEvictions fails if more pods were evicted than the preemptors need.
func checkEvictions(t *testing.T, b Burst, r *BurstResult) {
	t.Helper()
	t.Logf("%d preemptors bound, p50 %v, longest %v, %d victims", len(r.Waits), r.Quantile(.5), r.Quantile(1), r.Evicted)
	if want := b.Preemptors * b.Victims; r.Evicted != want {
		t.Errorf("%d pods were evicted, want %d", r.Evicted, want)
	}
}

// compact has etcd forget all versions before the latest, so that watches from before
// fail with 410.
func (c *Cluster) compact(t *testing.T) {
	t.Helper()
	post := func(path, body string, answer any) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.etcdURL+path, bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }() // opened for reading only
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("etcd: %s: %s", path, resp.Status)
		}
		if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
			t.Fatal(err)
		}
	}
	var state struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	post("/v3/kv/range", `{"key":"AA=="}`, &state)
	post("/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, state.Header.Revision), &struct{}{})
}

// The API server restarts in a burst, with a compacted history: watches expire. No pod is
// evicted in addition, and the extender has the pods of the cluster afterwards.
func TestFaults_APIServerRestarts(t *testing.T) {
	c, b := cluster(t), faultBurst()
	c.Kubelets.SetGrace(2 * time.Second)
	b.Fill(t, c)
	e := c.StartCede(t, Cede{Path: cede(t), Policy: "kubernetes"})
	c.StartScheduler(t, Scheduler{Name: "scheduler", Config: ExtenderConfig(e.URL(), false, "preemptVerb: preempt")})
	checkEvictions(t, b, b.Run(t, c, func() {
		c.KillAPIServer()
		c.compact(t)
		c.StartAPIServer(t)
	}))
	c.checkPods(t, e)
}

// checkPods waits until the extender has as many pods as the cluster.
func (c *Cluster) checkPods(t *testing.T, e *Extender) {
	t.Helper()
	Eventually(t, "the extender has the pods of the cluster", func(ctx context.Context) string {
		pods, err := c.Client.CoreV1().Pods("").List(ctx, everything)
		if err != nil {
			return err.Error()
		}
		got, err := Gauge(ctx, e.MetricsURL(), "cede_kube_pods")
		if err != nil {
			return err.Error()
		}
		if int(got) != len(pods.Items) {
			return fmt.Sprintf("%v pods, want %d", got, len(pods.Items))
		}
		return ""
	})
}

// Clocks of nodes are wrong by half an hour: pods start in the future or long ago.
func TestFaults_ClocksOfNodesDiffer(t *testing.T) {
	c, b := cluster(t), faultBurst()
	b.Skew = 30 * time.Minute
	b.Fill(t, c)
	e := c.StartCede(t, Cede{Path: cede(t), Policy: "kubernetes"})
	c.StartScheduler(t, Scheduler{Name: "scheduler", Config: ExtenderConfig(e.URL(), false, "preemptVerb: preempt")})
	checkEvictions(t, b, b.Run(t, c, nil))
}

// The extender is killed in a burst and comes back after some seconds. If it is
// ignorable, kube-scheduler continues with its own proposals. Otherwise preemptors wait
// until kube-scheduler tries all pods again, which it does every 5 minutes.
func TestFaults_ExtenderIsKilled(t *testing.T) {
	c := cluster(t)
	c.Kubelets.SetGrace(2 * time.Second)
	modes := []bool{true, false}
	if testing.Short() {
		modes = modes[:1]
	}
	for _, ignorable := range modes {
		t.Run(fmt.Sprintf("ignorable=%t", ignorable), func(t *testing.T) {
			b := faultBurst()
			b.Fill(t, c)
			defer c.Reset(t)
			e := c.StartCede(t, Cede{Path: cede(t), Policy: "kubernetes"})
			c.StartScheduler(t, Scheduler{Name: "scheduler", Config: ExtenderConfig(e.URL(), ignorable, "preemptVerb: preempt")})
			checkEvictions(t, b, b.Run(t, c, func() {
				e.Kill()
				time.Sleep(3 * time.Second)
				e = c.StartCede(t, e.Cede)
			}))
		})
	}
}

// Of two replicas, the leader is killed in a burst. kube-scheduler continues with its own
// proposals until the other one has acquired the Lease, and no pod is evicted in addition.
func TestFaults_LeaderIsKilled(t *testing.T) {
	c, b := cluster(t), faultBurst()
	c.Kubelets.SetGrace(2 * time.Second)
	b.Fill(t, c)
	const lease = "default/cede-kubernetes"
	leader := c.StartCede(t, Cede{Name: "cede-0", Path: cede(t), Policy: "kubernetes", Lease: lease})
	Eventually(t, "the first replica leads", func(ctx context.Context) string { return unless(leader.IsReady(ctx), "it is not ready") })
	standby := c.StartCede(t, Cede{Name: "cede-1", Path: cede(t), Policy: "kubernetes", Lease: lease})
	if standby.IsReady(t.Context()) {
		t.Error("both replicas are ready")
	}
	c.StartScheduler(t, Scheduler{Name: "scheduler", Config: ExtenderConfig(StartService(t, leader, standby), true, "preemptVerb: preempt")})
	var killed time.Time
	checkEvictions(t, b, b.Run(t, c, func() {
		leader.Kill()
		killed = time.Now()
	}))
	Eventually(t, "the standby leads", func(ctx context.Context) string { return unless(standby.IsReady(ctx), "it is not ready") })
	t.Logf("the standby leads %v after the leader was killed", time.Since(killed).Round(time.Second))
}

// unless returns a problem unless a condition holds.
func unless(holds bool, problem string) string {
	if holds {
		return ""
	}
	return problem
}

// The extender is away when pods are created. If it is ignorable, the proposals of
// kube-scheduler stand and all nodes pass filter. Otherwise nothing is evicted, and with
// the verb filter no pod is placed. Once the extender is back, pods that wait continue:
// after an error of filter by themselves, after one of preempt when a pod is deleted.
func TestFaults_ExtenderIsAway(t *testing.T) {
	c := cluster(t)
	for _, k := range []struct {
		name      string
		ignorable bool
		verbs     []string
		evicts    bool // while the extender is away
		places    bool
	}{
		{"preempt, ignorable", true, AllVerbs[:1], true, true},
		{"preempt", false, AllVerbs[:1], false, true},
		{"all verbs, ignorable", true, AllVerbs, true, true},
		{"all verbs", false, AllVerbs, false, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			if testing.Short() && k.ignorable == (len(k.verbs) == 1) {
				t.Skip("the short form plays one of each")
			}
			defer c.Reset(t)
			b := Burst{Nodes: 3, PodsPerNode: 2, Preemptors: 2, Victims: 2}
			b.Fill(t, c)
			high := c.CreatePriorityClass(t, 1000)
			c.CreateNodes(t, Node("spare", "600m"))
			c.CreatePods(t, Pod("bystander", "100m", high, "spare"))
			evicted := c.countEvictions("low-")
			defer evicted.stop()
			away := Cede{Path: cede(t), Policy: "kubernetes", HTTP: freePort(t), Metrics: freePort(t)}
			s := c.StartScheduler(t, Scheduler{Name: "scheduler", Config: ExtenderConfig((&Extender{Cede: away}).URL(), k.ignorable, k.verbs...)})
			defer s.Stop()

			preemptors := []*corev1.Pod{Pod("high-0", "2", high, ""), Pod("high-1", "2", high, "")}
			c.CreatePods(t, append(preemptors, Pod("fits", "500m", high, ""))...)
			c.awaitPods(t, "are bound while the extender is away", func(p *corev1.Pod) bool {
				return p.Spec.NodeName != "" || !k.evicts && strings.HasPrefix(p.Name, "high-") || !k.places && p.Name == "fits"
			})
			if !k.evicts {
				time.Sleep(5 * time.Second) // an eviction or binding that should not be there would follow at once
			}
			if n := evicted.count(); n != 0 && !k.evicts {
				t.Errorf("%d pods were evicted while the extender was away", n)
			}
			if node := c.nodeOf(t, "fits"); node != "" && !k.places {
				t.Errorf("a pod was placed on %s while the extender was away", node)
			}

			e := c.StartCede(t, away)
			defer e.Stop()
			if err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), "bystander", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			from := time.Now()
			c.awaitPods(t, "are bound after the extender is back", func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
			t.Logf("bound %v after the extender is back", time.Since(from).Round(time.Millisecond))
			if n := evicted.count(); n != b.Preemptors*b.Victims {
				t.Errorf("%d pods were evicted, want %d", n, b.Preemptors*b.Victims)
			}
		})
	}
}

// evictions counts the pods that are deleted.
type evictions struct {
	mu   sync.Mutex
	pods map[types.UID]bool
	stop func()
}

// countEvictions counts the pods with a prefix that are deleted, until stop is called.
func (c *Cluster) countEvictions(prefix string) *evictions {
	e := &evictions{pods: map[types.UID]bool{}}
	e.stop = c.Kubelets.Watch(func(old, p *corev1.Pod) {
		gone := p == nil
		if gone {
			p = old
		}
		if !strings.HasPrefix(p.Name, prefix) || !gone && p.DeletionTimestamp == nil {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.pods[p.UID] = true
	})
	return e
}

func (e *evictions) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.pods)
}

// awaitPods waits until a condition holds for all pods.
func (c *Cluster) awaitPods(t *testing.T, what string, holds func(*corev1.Pod) bool) {
	t.Helper()
	Eventually(t, "pods "+what, func(ctx context.Context) string {
		list, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, everything)
		if err != nil {
			return err.Error()
		}
		for i := range list.Items {
			if !holds(&list.Items[i]) {
				return list.Items[i].Name
			}
		}
		return ""
	})
}

// nodeOf returns the node of a pod, or "".
func (c *Cluster) nodeOf(t *testing.T, pod string) string {
	t.Helper()
	p, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Spec.NodeName
}
