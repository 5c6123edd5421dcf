package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
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
	c, b := Start(t, binaries(t)), faultBurst()
	c.Kubelets.SetGrace(2 * time.Second)
	b.Fill(t, c)
	e := c.StartCede(t, Cede{Path: cede(t), Policy: "kubernetes"})
	c.StartScheduler(t, Scheduler{Name: "scheduler", Config: ExtenderConfig(e.URL(), false, "preemptVerb: preempt")})
	checkEvictions(t, b, b.Run(t, c, func() {
		c.StopAPIServer()
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
	c, b := Start(t, binaries(t)), faultBurst()
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
	c := Start(t, binaries(t))
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
