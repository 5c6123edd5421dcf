package extender

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is an extender with a policy, served over HTTP.
type fixture struct {
	t        *testing.T
	extender *Extender
	url      string
	log      *lockedBuffer
	registry *prometheus.Registry
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// staticPolicies always returns the same set.
type staticPolicies struct{ set *policy.Set }

func (a staticPolicies) Pin() *policy.Set { return a.set.Pin() }

func start(t *testing.T, active func() sdk.Policy, change func(*Config)) *fixture {
	t.Helper()
	return startModule(t, policy.Native(policy.BuiltinDigest("default", "test"), active), "", change)
}

// startModule is like start, with a policy module and its configuration.
func startModule(t *testing.T, active policy.Module, config string, change func(*Config)) *fixture {
	t.Helper()
	version := func(src policy.Source) *policy.Version {
		v, err := policy.NewVersion(src)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	native := policy.Native(policy.BuiltinDigest("behind", "test"), func() sdk.Policy { return rules.New() })
	fallback := version(policy.Source{Name: "behind", Module: native})
	set, err := policy.NewSetWithFallback(fallback, version(policy.Source{Name: "default", Module: active, Config: []byte(config)}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Unpin)
	w := &fixture{t: t, log: &lockedBuffer{}, registry: prometheus.NewRegistry()}
	// On a loaded machine a policy may take longer than the default deadline.
	cfg := Config{Policies: staticPolicies{set}, Deadline: time.Minute, Logger: slog.New(slog.NewTextHandler(w.log, nil)), Registry: w.registry}
	if change != nil {
		change(&cfg)
	}
	if w.extender, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.extender.Handler("/kube/v1"))
	t.Cleanup(server.Close)
	w.url = server.URL + "/kube/v1/"
	return w
}

func kubernetesPolicy() sdk.Policy { return kubernetes.New() }

// send posts a value of kube-scheduler's own types, and decodes the response into
// another.
func (w *fixture) send(verb string, in, out any) {
	w.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	status, text := w.raw(http.MethodPost, verb, body)
	if status != http.StatusOK {
		w.t.Fatalf("%s: %d %s", verb, status, text)
	}
	strict := json.NewDecoder(strings.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(out); err != nil {
		w.t.Fatalf("%s: %v in %s", verb, err, text)
	}
}

func (w *fixture) raw(method, verb string, body []byte) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+verb, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close(); http.DefaultClient.CloseIdleConnections() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "zone": name[:1]}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func pod(name, on, cpu string, priority int32) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID("uid-" + name), Labels: map[string]string{"app": name}, CreationTimestamp: metav1.NewTime(epoch),
		},
		Spec: corev1.PodSpec{NodeName: on, Priority: &priority, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
	if on != "" {
		at := metav1.NewTime(epoch)
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &at}
	}
	return p
}

// feed sends the objects as one list, as kubectl prints them.
func (w *fixture) feed(objects ...any) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		w.t.Fatal(err)
	}
	if status, text := w.raw(http.MethodPut, "objects?replace=true", body); status != http.StatusOK {
		w.t.Fatalf("objects: %d %s", status, text)
	}
}

// proposalOf returns a proposal with complete victims; metaProposalOf one with their
// UIDs.
func proposalOf(pending *corev1.Pod, victims map[string][]*corev1.Pod) *extenderv1.ExtenderPreemptionArgs {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: pending, NodeNameToVictims: map[string]*extenderv1.Victims{}}
	for node, pods := range victims {
		args.NodeNameToVictims[node] = &extenderv1.Victims{Pods: pods}
	}
	return args
}

func metaProposalOf(pending *corev1.Pod, victims map[string][]*corev1.Pod) *extenderv1.ExtenderPreemptionArgs {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: pending, NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	for node, pods := range victims {
		m := &extenderv1.MetaVictims{}
		for _, p := range pods {
			m.Pods = append(m.Pods, &extenderv1.MetaPod{UID: string(p.UID)})
		}
		args.NodeNameToMetaVictims[node] = m
	}
	return args
}

// preempt sends the request and returns the response as "node: uids", sorted by node.
func (w *fixture) preempt(verb string, args *extenderv1.ExtenderPreemptionArgs) string {
	w.t.Helper()
	var out extenderv1.ExtenderPreemptionResult
	w.send(verb, args, &out)
	var lines []string
	for node, victims := range out.NodeNameToMetaVictims {
		var ids []string
		for _, p := range victims.Pods {
			ids = append(ids, strings.TrimPrefix(p.UID, "uid-"))
		}
		line := node + ": " + strings.Join(ids, " ")
		if victims.NumPDBViolations > 0 {
			line += fmt.Sprintf(" (%d violations)", victims.NumPDBViolations)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// countOf returns the counter with an outcome or result as label.
func (w *fixture) countOf(outcome string) float64 {
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == outcome {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

// cluster returns two full nodes: one with a big pod, the other with two small pods
// of lower priority.
func cluster() (nodes []any, big, small1, small2 *corev1.Pod) {
	return []any{node("n1"), node("n2")}, pod("big", "n1", "4", 100), pod("small1", "n2", "2", 10), pod("small2", "n2", "2", 50)
}

func TestPreempt_ChoosesAmongAllPodsOfCachedNodes(t *testing.T) {
	for _, mode := range []func(*corev1.Pod, map[string][]*corev1.Pod) *extenderv1.ExtenderPreemptionArgs{proposalOf, metaProposalOf} {
		w := start(t, kubernetesPolicy, nil)
		nodes, big, small1, small2 := cluster()
		w.feed(append(nodes, big, small1, small2)...)
		// The proposal for n2 is not optimal: the cache also contains small1.
		proposal := map[string][]*corev1.Pod{"n1": {big}, "n2": {small2}}
		pending := pod("pending", "", "2", 1000)
		if got, want := w.preempt("preempt", mode(pending, proposal)), "n2: small1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := w.preempt("preempt?nodes=all", mode(pending, proposal)), "n1: big; n2: small1"; got != want {
			t.Errorf("got %q for all nodes, want %q", got, want)
		}
		// kube-scheduler requested the pod again while the victim was still running, and
		// evicted the pods of the second response.
		w.feed(append(nodes, small2)...)
		if w.countOf(resultDiscarded) != 1 || w.countOf(resultChosen) != 1 {
			t.Errorf("%v preemptions counted as discarded and %v as chosen, want 1 and 1\n%s", w.countOf(resultDiscarded), w.countOf(resultChosen), w.log)
		}
	}
}

func TestPreempt_SortsVictimsByPriorityAndCountsViolations(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	small1, small2 := pod("small1", "n2", "2", 10), pod("small2", "n2", "2", 50)
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "small1"}}},
	}
	w.feed(node("n2"), small1, small2, budget)
	got := w.preempt("preempt", proposalOf(pod("pending", "", "4", 1000), map[string][]*corev1.Pod{"n2": {small1, small2}}))
	if want := "n2: small2 small1 (1 violations)"; got != want {
		t.Errorf("got %q, want %q\n%s", got, want, w.log)
	}
}

func TestPreempt_ChoosesNodeAmongProposedVictims(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	_, big, small1, small2 := cluster()
	proposal := map[string][]*corev1.Pod{"n1": {big}, "n2": {small2, small1}}
	small1.Namespace = "other" // victims may be in any namespace
	pending := pod("pending", "", "3", 1000)
	pending.Spec.NodeSelector = map[string]string{"disk": "ssd"} // checked by kube-scheduler
	if got, want := w.preempt("preempt", proposalOf(pending, proposal)), "n2: small2 small1"; got != want {
		t.Errorf("got %q, want %q\n%s", got, want, w.log)
	}
	if got, want := w.preempt("preempt?nodes=all", proposalOf(pending, proposal)), "n1: big; n2: small2 small1"; got != want {
		t.Errorf("got %q for all nodes, want %q", got, want)
	}
}

// shield protects pods with a priority of 50 or more.
type shield struct{ *rules.Default }

func (shield) PriorityDelta(in *sdk.Candidates, gap []int32, _ *sdk.Recheck) error {
	for i := range gap {
		if gap[i] = 1; in.Rows.Priority[i] >= 50 {
			gap[i] = 1 << 30
		}
	}
	return nil
}

func TestPreempt_DropsNodesRejectedByPolicy(t *testing.T) {
	w := start(t, func() sdk.Policy { return shield{rules.New()} }, nil)
	_, big, small1, small2 := cluster()
	pending := pod("pending", "", "2", 1000)
	if got, want := w.preempt("preempt?nodes=all", proposalOf(pending, map[string][]*corev1.Pod{"n1": {big}, "n2": {small1}})), "n2: small1"; got != want {
		t.Errorf("got %q, want %q\n%s", got, want, w.log)
	}
	if got := w.preempt("preempt", proposalOf(pending, map[string][]*corev1.Pod{"n1": {big}, "n2": {small2}})); got != "" {
		t.Errorf("got %q, want none", got)
	}
	if w.countOf(resultVetoed) != 1 {
		t.Errorf("%v vetoes counted, want 1", w.countOf(resultVetoed))
	}
}

// failing always returns an error; slow blocks until wait is closed.
type failing struct{ *rules.Default }

func (failing) SelectVictims(*sdk.Candidates, *sdk.Selection) error {
	return errors.New("cannot decide")
}

type slow struct {
	*rules.Default
	wait chan struct{}
}

func (s slow) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	<-s.wait
	return s.Default.SelectVictims(in, out)
}

func TestPreempt_KeepsProposalIfPolicyFails(t *testing.T) {
	_, big, small1, _ := cluster()
	proposal := map[string][]*corev1.Pod{"n1": {big}, "n2": {small1}}
	pending := pod("pending", "", "2", 1000)
	released := make(chan struct{})
	for name, c := range map[string]struct {
		policy func() sdk.Policy
		end    string
	}{
		"bad":  {func() sdk.Policy { return failing{rules.New()} }, resultFault},
		"slow": {func() sdk.Policy { return slow{rules.New(), released} }, resultTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, c.policy, func(cfg *Config) { cfg.Deadline = 20 * time.Millisecond })
			if name == "bad" {
				w.extender.cfg.Deadline = time.Minute
			}
			if got, want := w.preempt("preempt", proposalOf(pending, proposal)), "n1: big; n2: small1"; got != want {
				t.Errorf("got %q, want the proposal, %q\n%s", got, want, w.log)
			}
			if got := w.preempt("preempt?onFault=none", proposalOf(pending, proposal)); got != "" {
				t.Errorf("got %q, want none with onFault=none", got)
			}
			if w.countOf(c.end) != 2 || !strings.Contains(w.log.String(), "outcome="+c.end) {
				t.Errorf("%v counted as %s\n%s", w.countOf(c.end), c.end, w.log)
			}
			if name == "slow" {
				close(released)
				for range maxConcurrent { // until the late requests have returned
					w.extender.busy <- struct{}{}
				}
			}
		})
	}
}

func TestPreempt_KeepsProposalIfObjectsAreMissing(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	_, big, _, _ := cluster()
	pending := pod("pending", "", "2", 1000)
	for name, args := range map[string]*extenderv1.ExtenderPreemptionArgs{
		"victims by UID without a feed": metaProposalOf(pending, map[string][]*corev1.Pod{"n1": {big}}),
		"no pod":                        proposalOf(nil, map[string][]*corev1.Pod{"n1": {big}}),
	} {
		if got, want := w.preempt("preempt", args), "n1: big"; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := w.preempt("preempt", proposalOf(pending, nil)); got != "" {
		t.Errorf("got %q to no proposal", got)
	}
	// A term for pods of other namespaces cannot be translated.
	other, n1 := pod("other", "", "2", 1000), node("n1")
	w.feed(n1, big)
	other.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}, TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"prod"},
	}}}}
	if got, want := w.preempt("preempt", metaProposalOf(other, map[string][]*corev1.Pod{"n1": {big}})), "n1: big"; got != want || !strings.Contains(w.log.String(), "other namespaces") {
		t.Errorf("got %q, want %q\n%s", got, want, w.log)
	}
}

func TestBind_CreatesBinding(t *testing.T) {
	var path, auth, body string
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		path, auth, body = r.URL.Path, r.Header.Get("Authorization"), string(text)
		if strings.Contains(path, "taken") {
			rw.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(rw, `{"message":"pod taken is already assigned"}`)
		}
	}))
	defer api.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	w := start(t, kubernetesPolicy, func(c *Config) {
		c.Binder = &APIBinder{URL: api.URL, Client: client, Token: func() (string, error) { return "secret", nil }}
	})
	var out extenderv1.ExtenderBindingResult
	w.send("bind", &extenderv1.ExtenderBindingArgs{PodName: "p", PodNamespace: "ns", PodUID: "uid-p", Node: "n1"}, &out)
	if out.Error != "" || path != "/api/v1/namespaces/ns/pods/p/binding" || auth != "Bearer secret" || !strings.Contains(body, `"name":"n1"`) {
		t.Errorf("error %q: request to %s with %q: %s", out.Error, path, auth, body)
	}
	w.send("bind", &extenderv1.ExtenderBindingArgs{PodName: "taken", PodNamespace: "ns", Node: "n1"}, &out)
	if !strings.Contains(out.Error, "already assigned") {
		t.Errorf("error %q", out.Error)
	}
	if strings.Contains(w.log.String(), "secret") {
		t.Error("token found in the log")
	}
}

func TestBind_FailsWithoutBinder(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	var out extenderv1.ExtenderBindingResult
	w.send("bind", &extenderv1.ExtenderBindingArgs{PodName: "p", PodNamespace: "ns", Node: "n1"}, &out)
	if out.Error != ErrNoBinder.Error() {
		t.Errorf("error %q", out.Error)
	}
}

// If a field has an unexpected type, as in a later version, the proposal stands. If
// the body is not valid JSON, the response is an error or names no victims. The status
// is 200: with any other, kube-scheduler writes the URL, and with it the token, into the
// status of the pod.
func TestServe_HostileRequests(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	odd := `{"Pod":{"metadata":{"name":"p"},"spec":{"containers":7}},"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u"}],"NumPDBViolations":2}}}`
	if status, text := w.raw(http.MethodPost, "preempt", []byte(odd)); status != 200 || !strings.Contains(text, `"UID":"u"`) || !strings.Contains(text, `"NumPDBViolations":2`) {
		t.Errorf("%d %s, want the proposal", status, text)
	}
	for _, body := range []string{"", "[", "null7", strings.Repeat("[", 100_000)} {
		for verb, want := range map[string]string{"preempt": `{"NodeNameToMetaVictims":{}}`, "filter": `{"Error":"`, "prioritize": "[]", "bind": `{"Error":"`} {
			if status, text := w.raw(http.MethodPost, verb, []byte(body)); status != http.StatusOK || !strings.HasPrefix(text, want) {
				t.Errorf("%s of %.10q: status %d: %s", verb, body, status, text)
			}
		}
		if status, _ := w.raw(http.MethodPut, "objects", []byte(body+"x")); status != http.StatusBadRequest {
			t.Errorf("objects of %.10q: status %d, want 400", body, status)
		}
	}
	for _, body := range []string{`{"NodeNameToVictims":{"n":null}}`, `{"Pod":null}`, `{"Pod":{"metadata":{"name":"p"}},"NodeNameToVictims":{"n":{"Pods":[null]}}}`, `{"Nodes":{"items":[null,7]}}`, `{}`} {
		for _, verb := range []string{"preempt", "filter", "prioritize", "bind"} {
			if status, text := w.raw(http.MethodPost, verb, []byte(body)); status != http.StatusOK {
				t.Errorf("%s of %s: status %d: %s", verb, body, status, text)
			}
		}
	}
	if strings.Contains(w.log.String(), "panicked") {
		t.Error(w.log)
	}
}

// An option of preemptVerb that does not exist is logged: kube-scheduler does not check them.
func TestServe_LogsUnknownOptions(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	w.raw(http.MethodPost, "preempt?onFault=none&nodes=all", []byte("{}"))
	if strings.Contains(w.log.String(), "preemptVerb") {
		t.Errorf("valid options are logged: %s", w.log)
	}
	w.raw(http.MethodPost, "preempt?onfault=none&nodes=every", []byte("{}"))
	for _, want := range []string{"invalid preemptVerb", "nodes=every", "onfault=none", "use onFault=none or nodes=all"} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, w.log)
		}
	}
}
