package kubernetes

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/kube/apiservertest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode")) // see cmd/internal/app
}

const token = "a-token-of-sixteen-bytes"

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

// A fixture is a controller that watches a test API server.
type fixture struct {
	t      *testing.T
	api    *apiservertest.Server
	url    string
	client *http.Client
	log    *lockedBuffer
	stop   func() // stops the controller; called at the end of the test too
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("110")}},
	}
}

func pod(name, on string, priority int32) *corev1.Pod {
	start := metav1.NewTime(time.Now().Add(-time.Hour))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{NodeName: on, Priority: &priority, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4")}},
		}}},
		Status: corev1.PodStatus{StartTime: &start},
	}
}

// start runs a controller with settings in addition to the address.
func start(t *testing.T, api *apiservertest.Server, client *http.Client, settings map[string]string) *fixture {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: a, context: {cluster: c}}, {name: b, context: {cluster: none}}]
current-context: b
`, api.URL())
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := map[string]string{
		"listen.http": "127.0.0.1:0", "listen.metrics": "127.0.0.1:0", "kubernetes.kubeconfig": kubeconfig, "kubernetes.context": "a", "log.format": "json",
		"kubernetes.policy_interval": "10ms", "kubernetes.deadline": "1m",
	}
	maps.Copy(flags, settings)
	var environ []string
	for _, name := range []string{"token", "server_token"} { // secrets cannot be set by flags
		if secret, ok := flags["kubernetes."+name]; ok {
			delete(flags, "kubernetes."+name)
			environ = append(environ, "CEDE_KUBERNETES__"+strings.ToUpper(name)+"="+secret)
		}
	}
	c, err := config.Load(config.Sources{Kubernetes: true, Flags: flags, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, api: api, client: client, log: &lockedBuffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	started, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- app.RunController(ctx, app.ControllerOptions{
			Options: app.Options{Config: c, Build: app.Build{Version: "test"}, Stderr: w.log, Getenv: func(string) string { return "" }}, Connect: connect, Elect: elect,
		}, nil, func(url string) { started <- url })
	}()
	w.stop = sync.OnceFunc(func() {
		cancel()
		client.CloseIdleConnections()
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s", err, w.log)
		}
	})
	t.Cleanup(api.Close)
	t.Cleanup(w.stop)
	select {
	case w.url = <-started:
	case err := <-ended:
		ended <- err
		t.Fatalf("%v\n%s", err, w.log)
	}
	return w
}

func newClient() *http.Client { return &http.Client{Transport: &http.Transport{}} }

func (w *fixture) send(method, path, secret string, in any) (int, string) {
	w.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if secret != "" {
		req.SetBasicAuth("cede", secret)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func (w *fixture) eventually(what string, check func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within 5 minutes: %s\n%.4000s", what, w.log)
		}
	}
}

func (w *fixture) ready() {
	w.t.Helper()
	w.eventually("ready", func() bool {
		status, _ := w.send(http.MethodGet, "/readyz", "", nil)
		return status == http.StatusOK
	})
}

func proposal(pending *corev1.Pod, victims ...*corev1.Pod) *extenderv1.ExtenderPreemptionArgs {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: pending, NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	for _, v := range victims {
		args.NodeNameToMetaVictims[v.Spec.NodeName] = &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{{UID: string(v.UID)}}}
	}
	return args
}

// evicts reports whether the policy chooses a new pod as the victim of another one. Its node
// is new as well, since capacity on others may be promised. It waits until the controller has
// received both. Until then the response depends on onFault.
func (w *fixture) evicts(id string) (evicted bool) {
	w.t.Helper()
	victim := pod("victim-"+id, "node-"+id, 1)
	w.api.Put(node(victim.Spec.NodeName), victim)
	defer w.api.Delete(victim)
	args := proposal(pod("pending-"+id, "", 1000), victim)
	w.eventually("the controller has received "+victim.Name, func() bool {
		_, text := w.send(http.MethodPost, "/kube/v1/preempt?onFault=none", "", args)
		if evicted = strings.Contains(text, names("uid-"+victim.Name)); evicted {
			return true
		}
		_, text = w.send(http.MethodPost, "/kube/v1/preempt", "", args)
		return !strings.Contains(text, names("uid-"+victim.Name))
	})
	return evicted
}

func names(uid string) string {
	return `"Pods":[{"UID":"` + uid + `"}]`
}

// Nodes and pods arrive through the watch, and the policy chooses among them. Changes
// after the first list count too.
func TestKubernetes_AnswersFromWatch(t *testing.T) {
	t.Parallel()
	api := apiservertest.New()
	low, high, pending := pod("low", "n1", 1), pod("high", "n2", 500), pod("pending", "", 1000)
	api.Put(node("n1"), node("n2"), low, high, pending)
	w := start(t, api, newClient(), map[string]string{"kubernetes.token": token})
	w.ready()
	if status, text := w.send(http.MethodPost, "/kube/v1/preempt", token, proposal(pending, low, high)); status != http.StatusOK || !strings.Contains(text, names("uid-low")) {
		t.Errorf("%d %s, want low\n%s", status, text, w.log)
	}
	api.Delete(low)
	api.Delete(pending)
	lower, second := pod("lower", "n1", 0), pod("second", "", 1000)
	api.Put(lower, second)
	w.eventually("the new pod is a victim", func() bool {
		_, text := w.send(http.MethodPost, "/kube/v1/preempt?onFault=none", token, proposal(second, lower, high))
		return strings.Contains(text, names("uid-lower"))
	})
	if status, text := w.send(http.MethodPut, "/kube/v1/objects", token, map[string]string{}); status != http.StatusNotFound {
		t.Errorf("objects: %d %s, want 404: the watch is the only source", status, text)
	}
}

// A request without the token receives 200 and its own proposal, so that
// kube-scheduler does not write the URL into the status of a pod. Health needs no
// token.
func TestKubernetes_RequiresToken(t *testing.T) {
	t.Parallel()
	api := apiservertest.New()
	low, high, pending := pod("low", "n1", 1), pod("high", "n2", 500), pod("pending", "", 1000)
	api.Put(node("n1"), node("n2"), low, high)
	w := start(t, api, newClient(), map[string]string{"kubernetes.token": token})
	w.ready()
	for _, secret := range []string{"", "another-token-of-sixteen-bytes"} {
		status, text := w.send(http.MethodPost, "/kube/v1/preempt", secret, proposal(pending, low, high))
		if status != http.StatusOK || !strings.Contains(text, names("uid-low")) || !strings.Contains(text, names("uid-high")) {
			t.Errorf("%d %s, want 200 and the proposal", status, text)
		}
		if status, text := w.send(http.MethodPost, "/kube/v1/preempt?onFault=none", secret, proposal(pending, low)); status != http.StatusOK || text != `{"NodeNameToMetaVictims":{}}` {
			t.Errorf("%d %s, want 200 and no victims", status, text)
		}
		if status, text := w.send(http.MethodPost, "/kube/v1/filter", secret, &extenderv1.ExtenderArgs{Pod: pending, NodeNames: &[]string{"n1"}}); status != http.StatusOK || !strings.Contains(text, `"Error":"missing or unknown credentials`) || strings.Contains(text, "n1") {
			t.Errorf("filter: %d %s", status, text)
		}
	}
	if strings.Contains(w.log.String(), token) {
		t.Error("the log contains the token")
	}
	if status, _ := w.send(http.MethodGet, "/healthz", "", nil); status != http.StatusOK {
		t.Errorf("healthz: %d", status)
	}
}

// kube-scheduler writes the URL, and with it the token, into the status of a pod for any other
// status than 200, also if it uses a name for the loopback address that the controller does not
// accept.
func TestKubernetes_UnknownHostReceives200(t *testing.T) {
	t.Parallel()
	low, pending := pod("low", "n1", 1), pod("pending", "", 1000)
	w := start(t, apiservertest.New(), newClient(), map[string]string{"kubernetes.token": token})
	body, err := json.Marshal(proposal(pending, low))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/kube/v1/preempt":              names("uid-low"),
		"/kube/v1/preempt?onFault=none": `{"NodeNameToMetaVictims":{}}`,
		"/kube/v1/filter":               `"Error":"unknown host`,
		"/kube/v1/prioritize":           "[]",
		"/kube/v1/objects":              "",
		"/readyz":                       "",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "cede.example"
		r.SetBasicAuth("cede", token)
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // read to its end
		status := http.StatusOK
		if want == "" {
			status = http.StatusForbidden
		}
		if err != nil || resp.StatusCode != status || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %s (%v), want %d and %s", path, resp.StatusCode, text, err, status, want)
		}
	}
}

// The controller is not ready before all resources are synced, and names those that
// are missing. Proposals stand until then.
func TestKubernetes_NotReadyBeforeSync(t *testing.T) {
	t.Parallel()
	api := apiservertest.New()
	api.Refuse = func(r apiservertest.Request) int {
		if r.Resource == "pods" {
			return http.StatusForbidden
		}
		return 0
	}
	low, high := pod("low", "n1", 1), pod("high", "n2", 500)
	api.Put(node("n1"), node("n2"), low, high)
	w := start(t, api, newClient(), nil)
	w.eventually("the reason is reported", func() bool {
		status, text := w.send(http.MethodGet, "/readyz", "", nil)
		return status == http.StatusServiceUnavailable && strings.Contains(text, "not synced: pods (")
	})
	if status, text := w.send(http.MethodPost, "/kube/v1/preempt", "", proposal(pod("pending", "", 1000), low, high)); status != http.StatusOK || !strings.Contains(text, names("uid-low")) || !strings.Contains(text, names("uid-high")) {
		t.Errorf("%d %s, want the proposal", status, text)
	}
}

// Settings are read again if the link of a ConfigMap is replaced. Invalid ones are
// reported, and the previous ones stay.
func TestKubernetes_ReloadsPolicySettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, "settings.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(version, filepath.Join(dir, "next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	mount("1", "minRuntime: 1s\n")
	api := apiservertest.New()
	api.Put(node("n1"))
	w := start(t, api, newClient(), map[string]string{"kubernetes.policy": "protect", "kubernetes.policy_config": filepath.Join(dir, "..data", "settings.yaml")})
	w.ready()
	if !w.evicts("first") {
		t.Error("an old pod is not evicted")
	}
	mount("2", "minRuntime: [\n")
	w.eventually("the error is logged", func() bool { return strings.Contains(w.log.String(), `"msg":"reload failed"`) })
	if !w.evicts("second") {
		t.Error("the previous settings do not stay")
	}
	mount("3", "minRuntime: 8760h\n")
	w.eventually("the new settings are loaded", func() bool { return strings.Contains(w.log.String(), `"msg":"policy loaded"`) })
	if w.evicts("third") {
		t.Error("a protected pod is evicted")
	}
}

// With tls.verify_client a client certificate replaces the token, if it has one of the names that
// are required; probes need neither.
func TestKubernetes_AcceptsClientCertificate(t *testing.T) {
	t.Parallel()
	for name, accepted := range map[string]bool{"": true, "other,cede": true, "localhost": true, "kube-scheduler": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pair := certificate(t, dir)
			api := apiservertest.New()
			low, high, pending := pod("low", "n1", 1), pod("high", "n2", 500), pod("pending", "", 1000)
			api.Put(node("n1"), node("n2"), low, high)
			roots := x509.NewCertPool()
			roots.AddCert(pair.Leaf)
			anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
			trusted := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}}}
			defer trusted.CloseIdleConnections()
			flags := map[string]string{
				"tls.cert": filepath.Join(dir, "cert.pem"), "tls.key": filepath.Join(dir, "key.pem"), "tls.ca": filepath.Join(dir, "cert.pem"), "tls.verify_client": "true",
			}
			if name != "" {
				flags["kubernetes.client_names"] = name
			}
			w := start(t, api, anonymous, flags)
			w.ready()
			if _, text := w.send(http.MethodPost, "/kube/v1/preempt", "", proposal(pending, low, high)); !strings.Contains(text, names("uid-high")) {
				t.Errorf("without a certificate: %s, want the proposal", text)
			}
			w.client = trusted
			want := "uid-high" // the proposal
			if accepted {
				want = "uid-low"
			}
			if _, text := w.send(http.MethodPost, "/kube/v1/preempt", "", proposal(pending, low, high)); !strings.Contains(text, names(want)) {
				t.Errorf("with a certificate: %s, want %s\n%s", text, want, w.log)
			}
			w.client = anonymous
		})
	}
}

// certificate writes a self-signed certificate for 127.0.0.1 and its key.
func certificate(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cede"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: nil,
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	template.IPAddresses = append(template.IPAddresses, []byte{127, 0, 0, 1})
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, text := range map[string][]byte{"cert.pem": certPEM, "key.pem": keyPEM} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// If other hosts reach the listener, credentials are required.
func TestKubernetes_RequiresCredentialsOffLoopback(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Sources{Kubernetes: true, Flags: map[string]string{"listen.http": "0.0.0.0:4646", "kubernetes.client_names": "kube-scheduler"}})
	if err == nil || !strings.Contains(err.Error(), "kubernetes.token: any host that reaches 0.0.0.0:4646 could choose evictions") || !strings.Contains(err.Error(), "kubernetes.client_names: requires tls.verify_client") {
		t.Errorf("error %v", err)
	}
}

// Of two replicas one answers. When it stops in the middle of a burst, the other
// continues, and no pod is evicted beyond those that were named for a preemptor.
func TestKubernetes_StandbyContinuesBurst(t *testing.T) {
	t.Parallel()
	const pairs = 12
	api := apiservertest.New()
	for i := range pairs {
		name := fmt.Sprintf("n%d", i)
		api.Put(node(name), pod("low-"+name, name, 0))
	}
	// On a loaded machine a leader may be late to renew a short Lease, and would stop
	// leading. When it stops in order it releases the Lease.
	settings := map[string]string{"kubernetes.lease": "cede/cede-kubernetes", "kubernetes.lease_duration": "1m"}
	first := start(t, api, newClient(), settings)
	first.ready()
	second := start(t, api, newClient(), settings)
	second.eventually("synced", func() bool {
		status, _ := second.send(http.MethodGet, "/readyz/sync", "", nil)
		return status == http.StatusOK
	})
	second.eventually("the standby names the holder", func() bool {
		status, text := second.send(http.MethodGet, "/readyz", "", nil)
		if status == http.StatusOK {
			t.Fatalf("the standby is ready: %s", text)
		}
		return strings.Contains(text, "is held by")
	})
	var victims []*corev1.Pod
	for i := range pairs {
		victims = append(victims, pod(fmt.Sprintf("low-n%d", i), fmt.Sprintf("n%d", i), 0))
	}
	args := proposal(pod("pending", "", 1000), victims...)
	if _, text := second.send(http.MethodPost, "/kube/v1/preempt", "", args); strings.Count(text, "uid-low") != pairs {
		t.Errorf("the standby answers %s, want the proposal", text)
	}
	names := []string{"n0", "n1"}
	filter := &extenderv1.ExtenderArgs{Pod: pod("pending", "", 1000), NodeNames: &names}
	if _, text := second.send(http.MethodPost, "/kube/v1/filter", "", filter); !strings.Contains(text, `"NodeNames":["n0","n1"]`) {
		t.Errorf("the standby filters: %s", text)
	}

	evicted := map[string]string{} // preemptor by victim
	for i := range pairs {
		leader := first
		if i == pairs/2 {
			first.stop()
			second.ready()
		}
		if i >= pairs/2 {
			leader = second
		}
		preemptor := pod(fmt.Sprintf("high-%d", i), "", 1000)
		var remaining []*corev1.Pod
		for _, v := range victims {
			if evicted[string(v.UID)] == "" {
				remaining = append(remaining, v)
			}
		}
		var out extenderv1.ExtenderPreemptionResult
		_, text := leader.send(http.MethodPost, "/kube/v1/preempt", "", proposal(preemptor, remaining...))
		if err := json.Unmarshal([]byte(text), &out); err != nil || len(out.NodeNameToMetaVictims) != 1 {
			t.Fatalf("preemptor %d: %v in %s\n%.4000s", i, err, text, leader.log)
		}
		for on, v := range out.NodeNameToMetaVictims {
			if len(v.Pods) != 1 || evicted[v.Pods[0].UID] != "" {
				t.Fatalf("preemptor %d: %s, want one pod that was not named before", i, text)
			}
			evicted[v.Pods[0].UID] = preemptor.Name
			gone, bound := pod(strings.TrimPrefix(v.Pods[0].UID, "uid-"), on, 0), preemptor
			api.Delete(gone) // kube-scheduler evicts, and binds later
			bound.Status.NominatedNodeName = on
			api.Put(bound)
		}
	}
	if len(evicted) != pairs {
		t.Errorf("%d pods evicted for %d preemptors", len(evicted), pairs)
	}
}
