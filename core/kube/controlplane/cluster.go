package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A Cluster is a control plane without a scheduler, which each story starts.
type Cluster struct {
	Binaries Binaries
	Dir      string // of the files and logs of the processes
	Config   *rest.Config
	Client   *kubernetes.Clientset
	Kubelets *Kubelets

	scope                        testing.TB // to the end of which the processes run
	etcd, apiServer, controllers *Process
	certs                        *authority
	etcdURL, kubeconfig          string
	schedulerKubeconfig          string // with the permissions that kube-scheduler has
	port                         int    // of the API server
	podGroups                    bool   // the API server and the scheduler have PodGroups
}

// Start starts a control plane and waits until it is ready.
func Start(t testing.TB, b Binaries) *Cluster {
	t.Helper()
	return start(t, &Cluster{Binaries: b})
}

// StartWithPodGroups is Start for a cluster with the feature gate GenericWorkload: pods
// may belong to PodGroups, which are evicted as their disruption mode requires.
func StartWithPodGroups(t testing.TB, b Binaries) *Cluster {
	t.Helper()
	return start(t, &Cluster{Binaries: b, podGroups: true})
}

func start(t testing.TB, c *Cluster) *Cluster {
	t.Helper()
	c.scope, c.Dir, c.port = t, t.TempDir(), freePort(t)
	if err := c.issueCertificates(); err != nil {
		t.Fatal(err)
	}
	c.startEtcd(t)
	c.StartAPIServer(t)
	c.startControllers(t)
	Eventually(t, "the namespaces of the system exist", func(ctx context.Context) string {
		for _, name := range []string{metav1.NamespaceDefault, leaseNamespace} {
			if _, err := c.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
				return err.Error()
			}
		}
		return ""
	})
	c.Kubelets = startKubelets(t, c.Client)
	return c
}

// issueCertificates creates the certificates, and a kubeconfig for an administrator.
func (c *Cluster) issueCertificates() (err error) {
	if c.certs, err = newAuthority(c.Dir); err != nil {
		return err
	}
	if err := c.certs.issue("server", "kube-apiserver"); err != nil {
		return err
	}
	if err := c.certs.issue("admin", "admin", "system:masters"); err != nil {
		return err
	}
	if err := c.certs.issue("scheduler", "system:kube-scheduler"); err != nil {
		return err
	}
	if err := c.certs.issue("service-accounts", "service-accounts"); err != nil {
		return err
	}
	c.kubeconfig, c.schedulerKubeconfig = c.certs.path("kubeconfig"), c.certs.path("scheduler-kubeconfig")
	if err := errors.Join(c.writeKubeconfig(c.kubeconfig, "admin"), c.writeKubeconfig(c.schedulerKubeconfig, "scheduler")); err != nil {
		return err
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		return err
	}
	c.Config.QPS = -1                           // no limit: the stories create thousands of objects
	c.Config.WarningHandler = rest.NoWarnings{} // on API versions that later releases remove
	c.Client, err = kubernetes.NewForConfig(c.Config)
	return err
}

// writeKubeconfig writes a kubeconfig with a certificate.
func (c *Cluster) writeKubeconfig(file, certificate string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:%d", certificate-authority: %s}}]
users: [{name: u, user: {client-certificate: %s, client-key: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, c.port, c.certs.path("ca.crt"), c.certs.path(certificate+".crt"), c.certs.path(certificate+".key"))
	return os.WriteFile(file, []byte(text), 0o600)
}

// Kubeconfig returns the path of a kubeconfig with all permissions.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

func (c *Cluster) startEtcd(t testing.TB) {
	t.Helper()
	client, peer := freePort(t), freePort(t)
	c.etcdURL = "http://127.0.0.1:" + strconv.Itoa(client)
	peers := "http://127.0.0.1:" + strconv.Itoa(peer)
	c.etcd = StartProcess(t, c.Dir, "etcd", c.Binaries.Path("etcd"), "--name", "etcd", "--data-dir", filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls", c.etcdURL, "--advertise-client-urls", c.etcdURL, "--listen-peer-urls", peers,
		"--initial-advertise-peer-urls", peers, "--initial-cluster", "etcd="+peers, "--unsafe-no-fsync", "--log-level", "warn")
	c.etcd.awaitHealth(t, c.etcdURL+"/health")
}

// StartAPIServer starts the API server at its address, again after KillAPIServer.
func (c *Cluster) StartAPIServer(t testing.TB) {
	t.Helper()
	args := []string{
		"--etcd-servers", c.etcdURL, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none",
		"--secure-port", strconv.Itoa(c.port), "--service-cluster-ip-range", "10.0.0.0/24",
		"--tls-cert-file", c.certs.path("server.crt"), "--tls-private-key-file", c.certs.path("server.key"), "--client-ca-file", c.certs.path("ca.crt"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", c.certs.path("service-accounts.crt"),
		"--service-account-signing-key-file", c.certs.path("service-accounts.key"),
		"--authorization-mode", "RBAC", "--disable-admission-plugins", "ServiceAccount",
	}
	if c.podGroups {
		args = append(args, "--runtime-config", "scheduling.k8s.io/v1beta1=true")
	}
	c.apiServer = StartProcess(c.scope, c.Dir, "kube-apiserver", c.Binaries.Path("kube-apiserver"), append(args, c.gates()...)...)
	c.apiServer.awaitHealth(t, "https://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port))+"/readyz")
}

// gates returns the arguments that enable features.
func (c *Cluster) gates() []string {
	if !c.podGroups {
		return nil
	}
	return []string{"--feature-gates", "GenericWorkload=true"}
}

// KillAPIServer ends the API server at once. In order, it would wait for its clients.
func (c *Cluster) KillAPIServer() { c.apiServer.Kill() }

func (c *Cluster) startControllers(t testing.TB) {
	t.Helper()
	port := strconv.Itoa(freePort(t))
	controllers := "disruption-controller,node-lifecycle-controller,namespace-controller,garbage-collector-controller,replicaset-controller,deployment-controller,resourceclaim-controller"
	if c.podGroups {
		controllers += ",podgroup-protection-controller" // removes the finalizers of deleted groups
	}
	args := []string{
		"--kubeconfig", c.kubeconfig, "--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port", port,
		"--service-account-private-key-file", c.certs.path("service-accounts.key"), "--kube-api-qps", "500", "--kube-api-burst", "1000",
		"--controllers", controllers,
	}
	c.controllers = StartProcess(t, c.Dir, "kube-controller-manager", c.Binaries.Path("kube-controller-manager"), append(args, c.gates()...)...)
	c.controllers.awaitHealth(t, "https://127.0.0.1:"+port+"/healthz")
}

// A Scheduler configures kube-scheduler.
type Scheduler struct {
	Name   string // of the log
	Path   string // default: the stock program
	Config string // the part of KubeSchedulerConfiguration after clientConnection
}

// StartScheduler starts a scheduler and waits until it is ready.
func (c *Cluster) StartScheduler(t testing.TB, s Scheduler) *Process {
	t.Helper()
	if s.Path == "" {
		s.Path = c.Binaries.Path("kube-scheduler")
	}
	file, port := filepath.Join(c.Dir, s.Name+".yaml"), strconv.Itoa(freePort(t))
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: " +
		c.schedulerKubeconfig + "}\n" + s.Config
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--config", file, "--bind-address", "127.0.0.1", "--secure-port", port, "-v", "2",
		"--authorization-always-allow-paths", "/healthz,/readyz,/livez,/metrics",
	}
	p := StartProcess(t, c.Dir, s.Name, s.Path, append(args, c.gates()...)...)
	p.metrics = "https://127.0.0.1:" + port + "/metrics"
	p.awaitHealth(t, "https://127.0.0.1:"+port+"/readyz")
	return p
}

// Eventually waits until check returns "". The limit is longer than the 5 minutes after
// which kube-scheduler tries all pods again.
func Eventually(t testing.TB, what string, check func(ctx context.Context) string) {
	t.Helper()
	problem := ""
	for deadline := time.Now().Add(7 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if problem = check(t.Context()); problem == "" {
			return
		}
	}
	t.Fatalf("%s: %s", what, problem)
}
