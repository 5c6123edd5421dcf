package kubernetes

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/cli/agent"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/kube/watch"
)

// NewCommand returns `cede kubernetes`.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubernetes",
		Short: "Let a policy choose evictions in Kubernetes",
		Long: `Watch a Kubernetes cluster and answer its kube-scheduler as a scheduler extender: the
policy chooses which pods are evicted for a pod of higher priority. No server of cede
is needed. It reads nodes, pods, pod disruption budgets, priority classes, namespaces,
pod groups and resource claims, and writes nothing but its Lease: kube-scheduler
evicts and binds.

The cluster is that of the kubeconfig, or in a pod that of its service account. GET
/readyz succeeds once all objects have been read; until then kube-scheduler's own
proposals stand. Of several replicas with kubernetes.lease, one is elected and ready.

The files of the policy and the certificates are read again if they change, and on
SIGHUP. A policy can also be pulled from a container registry, by digest or by a tag
that is read again. A policy that is invalid is reported, and the previous one stays.

SIGINT and SIGTERM stop the process in order.`,
		Example: `  cede kubernetes
  cede kubernetes --kubeconfig ~/.kube/config --policy 'protect?minRuntime=10m'
  cede kubernetes -c /etc/cede/kubernetes.yaml`,
		Args: cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	from := agent.SourceFlags(cmd, env)
	from.Kubernetes = true
	values := map[string]*string{}
	for _, f := range []struct{ flag, key, help string }{
		{"kubeconfig", "kubernetes.kubeconfig", "read the address and credentials of the API server from `FILE`"},
		{"context", "kubernetes.context", "use the context `NAME` of the kubeconfig"},
		{"policy", "kubernetes.policy", "choose victims by the policy `P`: a built-in one, a path, or oci://…, with settings as P?key=value"},
	} {
		values[f.key] = cmd.Flags().String(f.flag, "", f.help)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for key, value := range values {
			if *value != "" {
				from.Flags[key] = *value
			}
		}
		c, err := from.Load(true)
		if err != nil {
			return err
		}
		reload := make(chan os.Signal, 1)
		signal.Notify(reload, syscall.SIGHUP)
		defer signal.Stop(reload)
		env.HandlesInterrupt.Store(true)
		o := app.ControllerOptions{
			Options: app.Options{Config: c, Build: env.Build, Stderr: env.Stderr, Terminal: env.StderrTerminal, Getenv: env.Getenv},
			Connect: connect, Elect: elect,
		}
		app.TuneForService()
		return app.RunController(cmd.Context(), o, reload, func(url string) {
			_, _ = fmt.Fprintf(env.Stdout, "cede answers kube-scheduler at %s/kube/v1\n", url)
		})
	}
	return cmd
}

// connect returns a watch of the configured cluster.
func connect(c *config.Kubernetes, to app.Feeder, log *slog.Logger) (app.Cluster, error) {
	rest, err := watch.LoadConfig(c.Kubeconfig, c.Context)
	if err != nil {
		return nil, err
	}
	watch.SetLogger(log)
	return watch.New(rest, to, log)
}

// elect returns the election by the configured Lease. The name of the host is that of
// the pod.
func elect(c *config.Kubernetes, log *slog.Logger) (app.Elector, error) {
	rest, err := watch.LoadConfig(c.Kubeconfig, c.Context)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(c.Lease, "/")
	return watch.NewElector(rest, watch.LeaseConfig{
		Namespace: namespace, Name: name, Identity: host + "_" + rand.Text(), Duration: c.LeaseDuration,
	}, log)
}
