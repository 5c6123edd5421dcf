package controlplane

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// objects returns the objects of all manifests below deploy/kubernetes, except templates.
func objects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	err := filepath.WalkDir(filepath.Join(repository, "deploy/kubernetes"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.Contains(text, []byte("{{")) {
			return err
		}
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			o := map[string]any{}
			if err := documents.Decode(&o); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			u := &unstructured.Unstructured{Object: o}
			if u.GetAPIVersion() != "" && u.GetKind() != "" && !strings.HasPrefix(u.GetAPIVersion(), "kustomize.") {
				list = append(list, u)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(list, func(a, b *unstructured.Unstructured) int { // namespaces first
		return boolToInt(a.GetKind() != "Namespace") - boolToInt(b.GetKind() != "Namespace")
	})
	return list
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The API server accepts every manifest, without unknown fields, and the pods of the
// Deployment under the security standard of their namespace.
func TestManifests_APIServerAcceptsThem(t *testing.T) {
	c := cluster(t)
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Client.Discovery()))
	kinds := map[string]int{}
	for _, o := range objects(t) {
		kinds[o.GetKind()]++
		kind := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) && !strings.HasSuffix(kind.Group, "k8s.io") && strings.Contains(kind.Group, ".") {
			t.Logf("%s %s: the definition of the kind is not installed here", kind, o.GetName())
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", kind, o.GetName(), err)
			continue
		}
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = client.Resource(mapping.Resource).Namespace(o.GetNamespace())
		}
		options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		if o.GetKind() == "Namespace" {
			options.DryRun = nil // the others are in it
		}
		if _, err := resource.Create(t.Context(), o, options); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() == "Deployment" {
			createPodOf(t, c, o)
		}
	}
	for _, kind := range []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment", "PodDisruptionBudget", "Service"} {
		if kinds[kind] == 0 {
			t.Errorf("no manifest of kind %s was found", kind)
		}
	}
}

// createPodOf creates a pod of the Deployment as a dry run.
func createPodOf(t *testing.T, c *Cluster, o *unstructured.Unstructured) {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
		t.Fatal(err)
	}
	p := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	p.Name = "of-deployment"
	if _, err := c.Client.CoreV1().Pods(o.GetNamespace()).Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("pod of the Deployment %s: %v", o.GetName(), err)
	}
}
