package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/apiservertest"
	"github.com/cede-scheduler/cede/core/kube/dra"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A mirror is a sink that holds the objects by kind, namespace and name.
type mirror struct {
	mu      sync.Mutex
	objects map[string]any
	whole   int // full updates
}

func describe(value any) (string, any) {
	name := func(m kube.Metadata) string { return fmt.Sprintf("%T %s/%s", value, m.Namespace, m.Name) }
	switch o := value.(type) {
	case *kube.Node:
		return name(o.Metadata), o
	case *kube.Pod:
		return name(o.Metadata), o
	case *kube.Budget:
		return name(o.Metadata), o
	case *kube.PriorityClass:
		return name(o.Metadata), o
	case *kube.Namespace:
		return name(o.Metadata), o
	case *kube.PodGroup:
		return name(o.Metadata), o
	case *dra.Slice:
		return name(kube.Metadata{Name: o.Metadata.Name}), o
	case *dra.Class:
		return name(kube.Metadata{Name: o.Metadata.Name}), o
	case *dra.Claim:
		return name(kube.Metadata{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}), o
	case *dra.Template:
		return name(kube.Metadata{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}), o
	}
	panic(fmt.Sprintf("unexpected object %T", value))
}

func (m *mirror) Feed(d *kube.Dump, whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if whole {
		m.objects = map[string]any{}
		m.whole++
	}
	put := func(value any) {
		k, o := describe(value)
		m.objects[k] = o
	}
	for _, o := range d.Nodes {
		put(o)
	}
	for _, o := range d.Pods {
		put(o)
	}
	for _, o := range d.Budgets {
		put(o)
	}
	for _, o := range d.Classes {
		put(o)
	}
	for _, o := range d.Namespaces {
		put(o)
	}
	for _, o := range d.PodGroups {
		put(o)
	}
	for _, o := range d.Devices.Slices {
		put(o)
	}
	for _, o := range d.Devices.Classes {
		put(o)
	}
	for _, o := range d.Devices.Claims {
		put(o)
	}
	for _, o := range d.Devices.Templates {
		put(o)
	}
	for _, o := range d.Deleted {
		k, _ := describe(o)
		delete(m.objects, k)
	}
}

func (m *mirror) snapshot() map[string]any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects)
}

// start runs a watcher until the test ends.
func start(t testing.TB, s *apiservertest.Server, sink Sink) *Watcher {
	t.Helper()
	w, err := New(s.Config(), sink, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		s.Close()
	})
	return w
}

// eventually waits until check returns "".
func eventually(t testing.TB, check func() string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(problem)
		}
	}
}

// randomObject returns an object with one of a few names.
func randomObject(r *rand.Rand) metav1.Object {
	meta := metav1.ObjectMeta{Name: fmt.Sprintf("o-%d", r.IntN(12)), Labels: map[string]string{"v": fmt.Sprint(r.IntN(1000))}}
	namespaced := meta
	namespaced.Namespace = fmt.Sprintf("ns-%d", r.IntN(2))
	switch r.IntN(12) {
	case 0:
		return &corev1.Node{ObjectMeta: meta, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": *resource.NewQuantity(r.Int64N(64), resource.DecimalSI)}}}
	case 1:
		return &corev1.Namespace{ObjectMeta: meta}
	case 2:
		return &schedulingv1.PriorityClass{ObjectMeta: meta, Value: r.Int32N(1000)}
	case 3:
		n := intstr.FromInt32(r.Int32N(5))
		return &policyv1.PodDisruptionBudget{ObjectMeta: namespaced, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &n}}
	}
	switch r.IntN(10) {
	case 0:
		return &schedulingv1beta1.PodGroup{ObjectMeta: namespaced, Spec: schedulingv1beta1.PodGroupSpec{
			DisruptionMode:        &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
			SchedulingConstraints: &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: "rack"}}},
		}}
	case 1:
		return &resourcev1.ResourceSlice{ObjectMeta: meta, Spec: resourcev1.ResourceSliceSpec{Driver: "d", NodeName: new("o-1"), Devices: []resourcev1.Device{
			{Name: "gpu", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new("A100")}}},
		}}}
	case 2:
		return &resourcev1.DeviceClass{ObjectMeta: meta, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "true"}}}}}
	case 3:
		return &resourcev1.ResourceClaim{ObjectMeta: namespaced, Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "d", Pool: "p", Device: "gpu"}}},
		}}}
	case 4:
		return &resourcev1.ResourceClaimTemplate{ObjectMeta: namespaced, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "c", Count: 2}}},
		}}}}
	}
	namespaced.UID = types.UID(namespaced.Namespace + namespaced.Name)
	return &corev1.Pod{ObjectMeta: namespaced, Spec: corev1.PodSpec{NodeName: fmt.Sprintf("o-%d", r.IntN(12)), Containers: []corev1.Container{{Name: "c"}}}}
}

// A watcher that cannot connect logs it: client-go is silent about refused connections.
func TestWatcher_ReportsThatTheServerIsUnreachable(t *testing.T) {
	t.Parallel()
	s := apiservertest.New()
	config := s.Config()
	s.Close()
	var log lockedText
	w, err := New(config, &mirror{}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	eventually(t, func() string {
		if !strings.Contains(log.String(), "kubernetes API server unreachable") {
			return "the log has no line: " + log.String()
		}
		return ""
	})
	if w.Reachable() {
		t.Error("the server is reported as reachable")
	}
	cancel()
	<-done
}

// A lockedText is a log that may be read while it is written.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Random model test: after any sequence of changes and faults the sink holds the
// objects of the server, with one full update at the start.
func TestWatcher_EquivalentToServerAfterFaults(t *testing.T) {
	for seed := range uint64(soak.Count(4, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			s, m, want := apiservertest.New(), &mirror{}, map[string]any{}
			s.WithoutWatchList = seed%2 == 1
			change := func() {
				o := randomObject(r)
				if r.IntN(3) == 0 {
					s.Delete(o)
					k, _ := describe(converted(t, o))
					delete(want, k)
					return
				}
				s.Put(o)
				k, value := describe(converted(t, o))
				want[k] = value
			}
			for range 20 {
				change()
			}
			start(t, s, m)
			for round := range 3 {
				for range 15 {
					change()
				}
				switch r.IntN(4) {
				case 0:
					s.Disconnect()
				case 1:
					s.Expire()
				case 2: // the objects change while no watch is connected
					s.Disconnect()
					change()
					s.Expire()
				}
				for range 5 {
					change()
				}
				eventually(t, func() string {
					if diff := cmp.Diff(want, m.snapshot()); diff != "" {
						return fmt.Sprintf("seed %d, round %d: objects of the server (-) and of the sink (+):\n%s", seed, round, diff)
					}
					return ""
				})
			}
			if m.whole != 1 {
				t.Errorf("%d full updates, want 1", m.whole)
			}
		})
	}
}

// converted returns the object that the sink receives.
func converted(t testing.TB, o metav1.Object) any {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	switch o.(type) {
	case *corev1.Node:
		value = &kube.Node{}
	case *corev1.Pod:
		value = &kube.Pod{}
	case *corev1.Namespace:
		value = &kube.Namespace{}
	case *policyv1.PodDisruptionBudget:
		value = &kube.Budget{}
	case *schedulingv1.PriorityClass:
		value = &kube.PriorityClass{}
	case *schedulingv1beta1.PodGroup:
		value = &kube.PodGroup{}
	case *resourcev1.ResourceSlice:
		value = &dra.Slice{}
	case *resourcev1.DeviceClass:
		value = &dra.Class{}
	case *resourcev1.ResourceClaim:
		value = &dra.Claim{}
	case *resourcev1.ResourceClaimTemplate:
		value = &dra.Template{}
	}
	if err := json.Unmarshal(text, value); err != nil {
		t.Fatal(err)
	}
	return value
}

// A cluster that does not serve pod groups and resource claims has none. The watcher does
// not wait for them, and does not request them.
func TestWatcher_OmitsResourcesThatAreNotServed(t *testing.T) {
	s, m := apiservertest.New(), &mirror{}
	s.Disabled = []string{"scheduling.k8s.io/v1beta1", "resource.k8s.io/v1"}
	s.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	w := start(t, s, m)
	eventually(t, func() string {
		if err := w.Ready(); err != nil {
			return err.Error()
		}
		return ""
	})
	for r := range s.Requests() {
		if r.Group == "resource.k8s.io" || r.Resource == "podgroups" {
			t.Errorf("request %+v", r)
		}
	}
	reader, err := NewReader(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	if d, err := reader.Dump(t.Context()); err != nil || len(d.Nodes) != 1 {
		t.Errorf("dump %+v, %v", d, err)
	}
}

// A watcher is ready after all resources are synced. Until then the error names those
// that are missing, and why.
func TestWatcher_ReadyNamesMissingResources(t *testing.T) {
	s := apiservertest.New()
	var mu sync.Mutex
	refuse := true
	s.Refuse = func(r apiservertest.Request) int {
		mu.Lock()
		defer mu.Unlock()
		if refuse && r.Resource == "pods" {
			return http.StatusForbidden
		}
		return 0
	}
	m := &mirror{}
	w := start(t, s, m)
	eventually(t, func() string {
		err := w.Ready()
		if err == nil {
			t.Fatal("ready without pods")
		}
		if text := err.Error(); !strings.HasPrefix(text, "not synced: pods (") || strings.Contains(text, "nodes") {
			return text
		}
		return ""
	})
	if m.snapshot() != nil {
		t.Error("objects were stored before all resources were synced")
	}
	mu.Lock()
	refuse = false
	mu.Unlock()
	eventually(t, func() string {
		if err := w.Ready(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// The fields that strip removes before encoding are not read by package kube.
func TestStrip_KeepsFieldsThatAreRead(t *testing.T) {
	fill := randfill.NewWithSeed(1).NilChance(.2).NumElements(1, 3).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(int64(c.Int31()), resource.DecimalSI)
		},
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(int64(c.Int31()), 0) },
		func(at *metav1.MicroTime, c randfill.Continue) {
			*at = metav1.NewMicroTime(time.Unix(int64(c.Int31()), 0))
		},
		func(*metav1.FieldsV1, randfill.Continue) {},
		func(*runtime.RawExtension, randfill.Continue) {},
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31()) },
	)
	for range soak.Count(30, 5000) {
		for _, o := range []metav1.Object{&corev1.Pod{}, &corev1.Node{}, &policyv1.PodDisruptionBudget{}, &schedulingv1.PriorityClass{}, &corev1.Namespace{}} {
			fill.Fill(o)
			want := converted(t, o)
			version := o.GetResourceVersion()
			got, err := strip(o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, valueOf(got)); diff != "" {
				t.Fatalf("%T: all fields (-) and stripped (+):\n%s", o, diff)
			}
			if again, err := strip(got); err != nil || again != got || got.(*object).ResourceVersion != version {
				t.Fatalf("strip of its own result: %v, %v", again, err)
			}
		}
	}
}

// The permissions that the documentation and the manifests state are those that a
// watcher uses.
func TestWatcher_ListsAndWatchesOnly(t *testing.T) {
	s := apiservertest.New()
	s.WithoutWatchList = true // so that lists are requested too
	w := start(t, s, &mirror{})
	eventually(t, func() string {
		if err := w.Ready(); err != nil {
			return err.Error()
		}
		return ""
	})
	var want []string
	for _, r := range resources {
		want = append(want, r.group.Group+" "+r.name+" list", r.group.Group+" "+r.name+" watch")
	}
	slices.Sort(want)
	eventually(t, func() string {
		var got []string
		for r := range s.Requests() {
			got = append(got, r.Group+" "+r.Resource+" "+r.Verb)
		}
		slices.Sort(got)
		return cmp.Diff(want, got)
	})
}
