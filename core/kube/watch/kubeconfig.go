package watch

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// LoadConfig returns the address and credentials of the API server: from a kubeconfig
// file, if it is named; otherwise from $KUBECONFIG or ~/.kube/config, and without
// these from the service account of the pod. context selects an entry of the file; if
// it is empty, the current context applies.
func LoadConfig(file, context string) (*rest.Config, error) {
	c, err := clientConfig(file, context).ClientConfig()
	if clientcmd.IsEmptyConfig(err) { // its text names a variable that has no effect here
		if file != "" {
			return nil, fmt.Errorf("kubeconfig %s names no cluster", file)
		}
		return nil, errors.New("no kubeconfig: use --kubeconfig or $KUBECONFIG, create ~/.kube/config, or run in a pod with a service account")
	}
	if err != nil {
		return nil, err
	}
	c.UserAgent = "cede-kubernetes"
	return c, nil
}

// LoadNames returns the name of the context that LoadConfig selects, and its default
// namespace. In a pod the name is empty.
func LoadNames(file, context string) (name, namespace string, err error) {
	c := clientConfig(file, context)
	if namespace, _, err = c.Namespace(); err != nil {
		return "", "", err
	}
	raw, err := c.RawConfig()
	return cmp.Or(context, raw.CurrentContext), namespace, err
}

func clientConfig(file, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
}

// SetLogger directs the log of client-go, which is one per process, to log.
func SetLogger(log *slog.Logger) { klog.SetSlogLogger(log) }
