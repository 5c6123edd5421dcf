package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	sigsyaml "sigs.k8s.io/yaml"
)

const chart = "../helm/cede"

// cases are folders with a kustomization and values of the chart that mean the same.
var cases = []string{"defaults", "optional", "token", "settings", "replicas"}

// render returns what a command line prints.
func render(t *testing.T, args ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := run(args, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// decode returns objects by kind and name. Unknown fields are errors.
func decode(t *testing.T, text []byte) map[string]runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme, monitoringv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	objects := map[string]runtime.Object{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if isEmpty(document) {
			continue
		}
		o, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		named, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		key := kind.Kind + " " + named.GetNamespace() + "/" + named.GetName()
		if objects[key] != nil {
			t.Errorf("%s occurs twice", key)
		}
		objects[key] = o
	}
}

// isEmpty reports whether a document consists of comments and separators.
func isEmpty(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// comparable returns objects as plain values, with the files of ConfigMaps parsed. It
// removes the two intended differences: Helm creates the namespace itself, and only the
// chart restarts pods if the configuration changes.
func comparable(t *testing.T, objects map[string]runtime.Object) map[string]any {
	t.Helper()
	values := map[string]any{}
	for key, o := range objects {
		switch o := o.(type) {
		case *corev1.Namespace:
			continue
		case *corev1.ConfigMap:
			files := map[string]any{}
			for name, text := range o.Data {
				var value any
				if err := sigsyaml.UnmarshalStrict([]byte(text), &value); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				files[name] = value
			}
			values[key+" data"], o.Data = files, nil
		case *appsv1.Deployment:
			delete(o.Spec.Template.Annotations, "checksum/config")
			if len(o.Spec.Template.Annotations) == 0 {
				o.Spec.Template.Annotations = nil
			}
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		values[key] = value
	}
	return values
}

func TestRender_ChartEqualsKustomization(t *testing.T) {
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			kustomize := comparable(t, decode(t, render(t, "kustomize", dir)))
			helm := comparable(t, decode(t, render(t, "helm", chart, filepath.Join(dir, "values.yaml"))))
			if len(helm) < 8 {
				t.Errorf("%d objects, want at least 8", len(helm))
			}
			if diff := cmp.Diff(kustomize, helm); diff != "" {
				t.Errorf("kustomization (-) and chart (+):\n%s", diff)
			}
		})
	}
}

// The namespace enforces the level restricted, so that other pods would be rejected.
func TestRender_PodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range cases {
		o := decode(t, render(t, "helm", chart, filepath.Join("testdata", name, "values.yaml")))["Deployment cede/cede-kubernetes"]
		pod := o.(*appsv1.Deployment).Spec.Template
		level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
		for _, r := range evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
			if !r.Allowed {
				t.Errorf("%s: %s: %s", name, r.ForbiddenReason, r.ForbiddenDetail)
			}
		}
	}
}

// The program accepts the configuration of every case. The token is in the environment.
func TestRender_ConfigurationIsValid(t *testing.T) {
	cede := filepath.Join(t.TempDir(), "cede")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", cede, "./cmd/cede")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range cases {
		o := decode(t, render(t, "helm", chart, filepath.Join("testdata", name, "values.yaml")))["ConfigMap cede/cede-kubernetes"]
		file := filepath.Join(t.TempDir(), "kubernetes.yaml")
		if err := os.WriteFile(file, []byte(o.(*corev1.ConfigMap).Data["kubernetes.yaml"]), 0o600); err != nil {
			t.Fatal(err)
		}
		validate := exec.CommandContext(t.Context(), cede, "config", "validate", "--kubernetes", "--no-files", file)
		if name == "token" || name == "replicas" {
			validate.Env = append(os.Environ(), "CEDE_KUBERNETES__TOKEN=a-token-of-sixteen-bytes")
		}
		if out, err := validate.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// Values that would install an open endpoint, and misspelled ones, are rejected.
func TestRender_SchemaRejectsValues(t *testing.T) {
	for text, want := range map[string]string{
		"authentication: {clientCertificates: false}": "authentication",
		"polcy: {name: protect}":                      "polcy",
		"networkPolicy: {enabled: \"yes\"}":           "networkPolicy",
		"replicas: 2":                                 "leaderElection",
	} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"helm", chart, file}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %s", text, err, want)
		}
	}
}
