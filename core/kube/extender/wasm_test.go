package extender

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/wasm"
)

// startWasm is like start, with the module in a file.
func startWasm(t *testing.T, file, config string, change func(*Config)) *fixture {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	host, err := wasm.NewHost(wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	m, err := host.Load(t.Context(), code, policy.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return startModule(t, m, config, change)
}

// Runs a pod through all verbs with a policy module in another language: no node
// fits, victims are chosen and evicted, the pod is scored and bound, and its
// resources are not available to the next pod.
func TestWasm_FilterPreemptBind(t *testing.T) {
	for _, language := range []string{"c", "rust", "assemblyscript"} {
		t.Run(language, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer api.Close()
			bind := func(c *Config) {
				c.Binder = &APIBinder{URL: api.URL, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
				c.Deadline = time.Minute
			}
			w := startWasm(t, "../../../sdk/abi/testdata/guests/decay-"+language+".wasm", `{"spare":["prod"]}`, bind)
			n1, n2 := managed(node("n1")), managed(node("n2"))
			protected, victim, next, pending := managed(pod("protected", "n1", "4", 5)), managed(pod("victim", "n2", "4", 500)), managed(pod("next", "", "2", 1000)), managed(pod("pending", "", "3", 1000))
			protected.Namespace = "prod"
			w.feed(n1, n2, protected, victim, pending)
			if got, want := w.filter(pending, n1, n2), "\nn1: lacks cpu\nn2: lacks cpu"; got != want {
				t.Fatalf("filter returned %q, want %q", got, want)
			}
			// The built-in rules would evict the pod of lower priority.
			proposal := map[string][]*corev1.Pod{"n1": {protected}, "n2": {victim}}
			for _, mode := range []func(*corev1.Pod, map[string][]*corev1.Pod) *extenderv1.ExtenderPreemptionArgs{proposalOf, metaProposalOf} {
				if got, want := w.preempt("preempt", mode(pending, proposal)), "n2: victim"; got != want {
					t.Fatalf("got %q, want %q\n%s", got, want, w.log)
				}
			}
			if got := w.preempt("preempt", metaProposalOf(pending, map[string][]*corev1.Pod{"n1": {protected}})); got != "" || w.countOf(resultVetoed) != 1 {
				t.Errorf("got %q and %v vetoes, want none and 1\n%s", got, w.countOf(resultVetoed), w.log)
			}

			w.feed(n1, n2, protected, pending)
			if got, want := w.filter(pending, n1, n2), "n2\nn1: lacks cpu"; got != want {
				t.Errorf("filter returned %q, want %q", got, want)
			}
			if got := w.scores(pending, n2); got["n2"] != 10 {
				t.Errorf("scores %v", got)
			}
			var out extenderv1.ExtenderBindingResult
			w.send("bind", &extenderv1.ExtenderBindingArgs{PodName: "pending", PodNamespace: "default", PodUID: pending.UID, Node: "n2"}, &out)
			if out.Error != "" {
				t.Error(out.Error)
			}
			if got, want := w.filter(next, n1, n2), "\nn1: lacks cpu\nn2: lacks cpu"; got != want {
				t.Errorf("after binding, filter returned %q, want %q", got, want)
			}
		})
	}
}

// If a module misbehaves, the proposal of kube-scheduler stands.
func TestWasm_KeepsProposalIfModuleMisbehaves(t *testing.T) {
	for _, name := range []string{"trap_select", "spin", "pick_stranger", "score_nan", "exit"} {
		t.Run(name, func(t *testing.T) {
			w := startWasm(t, "../../../plugins/wasm/testdata/hostile/"+name+".wasm", "", func(c *Config) { c.Deadline = time.Minute })
			nodes, big, small1, small2 := cluster()
			w.feed(append(nodes, big, small1, small2)...)
			pending := pod("pending", "", "2", 1000)
			got := w.preempt("preempt", metaProposalOf(pending, map[string][]*corev1.Pod{"n1": {big}, "n2": {small2}}))
			if want := "n1: big; n2: small2"; got != want || w.countOf(resultFault) != 1 || !strings.Contains(w.log.String(), "outcome="+resultFault) {
				t.Errorf("got %q, want %q; %v faults\n%s", got, want, w.countOf(resultFault), w.log)
			}
		})
	}
}
