package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cede-scheduler/cede/core/kube/apiservertest"
)

// TestKubectlScripts runs the scripts of kubectl cede. Each has an API server of its own
// with the objects of its file cluster.yaml. The server refuses to list the resources that
// the file forbidden names.
func TestKubectlScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/kubectl",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			api := apiservertest.New()
			env.Defer(api.Close)
			objects, err := readObjects(env.WorkDir + "/cluster.yaml")
			if err != nil {
				return err
			}
			api.Put(objects...)
			api.Time = time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC) // ages are counted until then
			forbidden, err := os.ReadFile(env.WorkDir + "/forbidden")
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			names := strings.Fields(string(forbidden))
			api.Refuse = func(r apiservertest.Request) int {
				if slices.Contains(names, r.Resource) {
					return http.StatusForbidden
				}
				return 0
			}
			env.Setenv("KUBECONFIG", env.WorkDir+"/kubeconfig")
			return os.WriteFile(env.WorkDir+"/kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}, {name: gone, cluster: {server: "http://127.0.0.1:1"}}]
contexts:
- {name: shop, context: {cluster: c, namespace: web}}
- {name: away, context: {cluster: gone}}
current-context: shop
`, api.URL()), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// readObjects reads the objects of a file strictly.
func readObjects(file string) (objects []metav1.Object, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), policyv1.AddToScheme(scheme), schedulingv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer func() { _ = documents.Close() }() // in memory
	buffer := make([]byte, len(text))
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		o, _, err := decoder.Decode(buffer[:n], nil, nil)
		if err != nil {
			return nil, err
		}
		object, ok := o.(metav1.Object)
		if !ok {
			return nil, fmt.Errorf("%T has no metadata", o)
		}
		objects = append(objects, object)
	}
}
