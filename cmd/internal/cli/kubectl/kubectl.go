package kubectl

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// Plugin is the name of the program that kubectl runs for `kubectl cede`.
const Plugin = "kubectl-cede"

// IsPlugin reports whether a program was started as the plugin of kubectl.
func IsPlugin(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == Plugin
}

// NewCommand returns `cede kubectl`.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl",
		Short: "Predict and explain evictions in a running cluster",
		Long: `Read a running Kubernetes cluster, and predict or explain evictions. Nothing is written.

If the program is also named kubectl-cede, for example by a link, these commands are
those of kubectl cede. They read the kubeconfig as kubectl does, and need permission to
list nodes, pods, namespaces, pod disruption budgets and priority classes.

The state of the cluster is evaluated as cede sim import kube and cede compare do.`,
		Example: `  cede kubectl what-if pod.yaml
  cede kubectl why web/shop
  ln -s cede kubectl-cede`,
	}
	c := &cluster{env: env}
	f := cmd.PersistentFlags()
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "read the address and credentials of the API server from `FILE` (default $KUBECONFIG, or ~/.kube/config)")
	f.StringVar(&c.context, "context", "", "use the context `NAME` of the kubeconfig")
	f.StringVarP(&c.namespace, "namespace", "n", "", "use the namespace `NAME` (default that of the context)")
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newWhatIfCmd(c), newWhyCmd(c), newNextCmd(c), newCompareCmd(c))
	return cmd
}

// NewPlugin returns `kubectl cede` as a command tree of its own.
func NewPlugin(env *cmdutil.Env) *cobra.Command {
	cmd := NewCommand(env)
	cmd.Use = Plugin
	cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cede"}
	root := cmdutil.NewRoot(env, cmd)
	cmdutil.AddExitCodes(root)
	return root
}
