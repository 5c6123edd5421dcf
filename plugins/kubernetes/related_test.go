package kubernetes

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/dra"
)

// gates returns feature gates of which some are enabled.
func gates(t *testing.T, enabled ...featuregate.Feature) featuregate.FeatureGate {
	t.Helper()
	g := featuregate.NewFeatureGate()
	for _, f := range []featuregate.Feature{features.GenericWorkload, features.DynamicResourceAllocation} {
		if err := g.Add(map[featuregate.Feature]featuregate.FeatureSpec{f: {Default: slices.Contains(enabled, f)}}); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// Pod groups and claims are part of the first dump. Changes follow one by one, and none
// precedes it.
func TestRelated_FeedsAllThenChanges(t *testing.T) {
	client := fake.NewClientset(&schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "gang", Namespace: "x"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	fed := make(chan string, 10)
	r, err := watchRelated(factory, gates(t, features.GenericWorkload, features.DynamicResourceAllocation), slog.New(slog.DiscardHandler), func(d *kube.Dump, whole bool) {
		fed <- fmt.Sprint(whole, describeRelated(d))
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	if err := r.feedAll(&kube.Dump{Pods: []*kube.Pod{{Metadata: kube.Metadata{Name: "pod"}}}}); err != nil {
		t.Fatal(err)
	}
	if got, want := <-fed, "true 1 pods, group x/gang"; got != want {
		t.Errorf("first dump: %s, want %s", got, want)
	}
	claims := client.ResourceV1().ResourceClaims("x")
	if _, err := claims.Create(t.Context(), &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: "x"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, want := next(fed, "claim"), "false 0 pods, claim x/gpu"; got != want {
		t.Errorf("change: %s, want %s", got, want)
	}
	if err := claims.Delete(t.Context(), "gpu", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, want := next(fed, "claim"), "false 0 pods, deleted claim x/gpu"; got != want {
		t.Errorf("deletion: %s, want %s", got, want)
	}
}

// Kinds of disabled features are not watched: the API server may not serve them.
func TestRelated_WatchesEnabledKindsOnly(t *testing.T) {
	for _, k := range []struct {
		gates featuregate.FeatureGate
		want  int
	}{{gates(t), 0}, {gates(t, features.GenericWorkload), 1}, {gates(t, features.DynamicResourceAllocation), 3}} {
		factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
		r, err := watchRelated(factory, k.gates, slog.New(slog.DiscardHandler), func(*kube.Dump, bool) {})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(r.informers); n != k.want {
			t.Errorf("%d kinds are watched, want %d", n, k.want)
		}
	}
}

// next returns the first text that contains a word.
func next(texts <-chan string, word string) string {
	for text := range texts {
		if strings.Contains(text, word) {
			return text
		}
	}
	return ""
}

func describeRelated(d *kube.Dump) string {
	text := fmt.Sprintf(" %d pods", len(d.Pods))
	for _, g := range d.PodGroups {
		text += ", group " + g.Key()
	}
	for _, c := range d.Devices.Claims {
		text += ", claim " + c.Metadata.Key()
	}
	for _, o := range d.Deleted {
		if c, ok := o.(*dra.Claim); ok {
			text += ", deleted claim " + c.Metadata.Key()
		}
	}
	return text
}
