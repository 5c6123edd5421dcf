package kubernetes

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/kube/apiservertest"
)

const manifests = "../../../../deploy/kubernetes"

// decode returns the objects of the manifests that kustomization.yaml lists. Unknown
// fields are errors.
func decode(t *testing.T) []runtime.Object { return decodeFolder(t, manifests) }

// decodeFolder is decode for a folder, such as a component.
func decodeFolder(t *testing.T, folder string) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var list struct{ Resources []string }
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, name := range list.Resources {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var doc any
			if err := documents.Decode(&doc); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			one, err := yaml.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			o, _, err := decoder.Decode(one, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			objects = append(objects, o)
		}
	}
	return objects
}

func find[T runtime.Object](t *testing.T, objects []runtime.Object) (found T) {
	t.Helper()
	n := 0
	for _, o := range objects {
		if o, ok := o.(T); ok {
			found = o
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%d objects of type %T, want 1", n, found)
	}
	return found
}

// The role permits the requests that the controller sends, and no others.
func TestManifests_RolePermitsTheRequestsSent(t *testing.T) {
	t.Parallel()
	var permitted []string
	for _, rule := range find[*rbacv1.ClusterRole](t, decode(t)).Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					permitted = append(permitted, group+"/"+resource+" "+verb)
				}
			}
		}
	}
	slices.Sort(permitted)
	api := apiservertest.New()
	api.WithoutWatchList = true // so that lists are requested too
	w := start(t, api, newClient(), nil)
	w.ready()
	var diff string
	w.eventually("each permission is used", func() bool {
		var sent []string
		for r := range maps.Keys(api.Requests()) {
			sent = append(sent, r.Group+"/"+r.Resource+" "+r.Verb)
		}
		slices.Sort(sent)
		diff = cmp.Diff(permitted, sent)
		return diff == "" || len(sent) > len(permitted)
	})
	if diff != "" {
		t.Errorf("permitted (-) and sent (+):\n%s", diff)
	}
}

// Names and ports of the objects fit together, and the probes call paths that need no
// client certificate.
func TestManifests_ReferencesAreConsistent(t *testing.T) {
	t.Parallel()
	objects := decode(t)
	deployment, service := find[*appsv1.Deployment](t, objects), find[*corev1.Service](t, objects)
	account, binding, role := find[*corev1.ServiceAccount](t, objects), find[*rbacv1.ClusterRoleBinding](t, objects), find[*rbacv1.ClusterRole](t, objects)
	budget, namespace := find[*policyv1.PodDisruptionBudget](t, objects), find[*corev1.Namespace](t, objects)
	pod := deployment.Spec.Template
	if pod.Spec.ServiceAccountName != account.Name || binding.Subjects[0].Name != account.Name || binding.Subjects[0].Namespace != namespace.Name || binding.RoleRef.Name != role.Name {
		t.Error("pod, service account, binding and role do not refer to each other")
	}
	for what, labels := range map[string]map[string]string{"Deployment": deployment.Spec.Selector.MatchLabels, "Service": service.Spec.Selector, "PodDisruptionBudget": budget.Spec.Selector.MatchLabels} {
		if !maps.Equal(labels, pod.Labels) {
			t.Errorf("%s selects %v, but pods have %v", what, labels, pod.Labels)
		}
	}
	c := pod.Spec.Containers[0]
	for _, p := range service.Spec.Ports {
		if !slices.ContainsFunc(c.Ports, func(o corev1.ContainerPort) bool { return o.Name == p.TargetPort.String() }) {
			t.Errorf("no container port %s", p.TargetPort.String())
		}
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if probe == nil || !slices.Contains([]string{"/readyz", "/healthz"}, probe.HTTPGet.Path) || probe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("probe %v", probe)
		}
	}
	if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || !*pod.Spec.SecurityContext.RunAsNonRoot || !*c.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("the container lacks resources or runs with more privileges than it needs")
	}
	if strings.Join(c.Command, " ") != "cede" || c.Args[0] != "kubernetes" {
		t.Errorf("command %v %v", c.Command, c.Args)
	}
}

// The configuration in the manifests is valid.
func TestManifests_ConfigurationIsValid(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Sources{Kubernetes: true, Files: []string{filepath.Join(manifests, "kubernetes.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Warnings() {
		if w.Key != "listen.metrics" {
			t.Errorf("warning: %s", w)
		}
	}
}

// The image of the Containerfile contains the program under the name that the Deployment
// starts, and sets no variables, which would take precedence over the ConfigMap. Container
// runtimes set PATH if the image has none.
func TestManifests_RunInTheImage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../examples/deploy/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages := strings.Split(string(text), "\nFROM ")
	image := stages[len(stages)-1]
	program := find[*appsv1.Deployment](t, decode(t)).Spec.Template.Spec.Containers[0].Command[0]
	if !strings.Contains(image, " /usr/local/bin/"+program+"\n") {
		t.Errorf("the image has no program %q in the default PATH:\n%s", program, image)
	}
	if strings.Contains(image, "CEDE_") {
		t.Errorf("the image sets variables:\n%s", image)
	}
}

// The role of the component permits the requests for the Lease, and no others.
func TestManifests_LeaseRolePermitsTheRequestsSent(t *testing.T) {
	t.Parallel()
	var permitted []string
	for _, rule := range find[*rbacv1.Role](t, decodeFolder(t, filepath.Join(manifests, "components/leader-election"))).Rules {
		for _, verb := range rule.Verbs {
			permitted = append(permitted, rule.APIGroups[0]+"/"+rule.Resources[0]+" "+verb)
			if isNamed := len(rule.ResourceNames) == 1; isNamed == (verb == "create") {
				t.Errorf("%s of the names %v", verb, rule.ResourceNames)
			}
		}
	}
	slices.Sort(permitted)
	api := apiservertest.New()
	w := start(t, api, newClient(), map[string]string{"kubernetes.lease": "cede/cede-kubernetes"})
	w.ready()
	w.stop() // releases the Lease
	var sent []string
	for r := range api.Requests() {
		if r.Resource == "leases" {
			sent = append(sent, r.Group+"/"+r.Resource+" "+r.Verb)
		}
	}
	slices.Sort(sent)
	if diff := cmp.Diff(permitted, sent); diff != "" {
		t.Errorf("permitted (-) and sent (+):\n%s", diff)
	}
}
