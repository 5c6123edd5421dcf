package kubectl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/suggest"
)

// maxNames bounds the candidates that an error lists.
const maxNames = 10

// A podName identifies a pod.
type podName struct{ namespace, name string }

func (n podName) String() string { return n.namespace + "/" + n.name }

func nameOf(p *kube.Pod) podName {
	return podName{cmp.Or(p.Metadata.Namespace, "default"), p.Metadata.Name}
}

// parsePod parses POD, pod/POD or NAMESPACE/POD.
func (c *cluster) parsePod(arg string) (podName, error) {
	namespace, name, qualified := strings.Cut(arg, "/")
	if !qualified || slices.Contains([]string{"pod", "pods", "po"}, namespace) {
		if qualified {
			arg = name
		}
		namespace, name = c.namespace, arg
	}
	if name == "" || namespace == "" || strings.Contains(name, "/") {
		return podName{}, cmdutil.Usagef("use POD or NAMESPACE/POD", "invalid pod %q", arg)
	}
	return podName{namespace, name}, nil
}

// findPod returns the pod with a name, or the only one with it as a prefix. If there is
// none, it returns nil and an error that lists similar names.
func findPod(d *kube.Dump, want podName) (*kube.Pod, error) {
	var prefixed []*kube.Pod
	var names, elsewhere []string
	for _, p := range d.Pods {
		switch n := nameOf(p); {
		case n == want:
			return p, nil
		case n.name == want.name:
			elsewhere = append(elsewhere, n.namespace)
		case n.namespace == want.namespace:
			names = append(names, n.name)
			if strings.HasPrefix(n.name, want.name) {
				prefixed = append(prefixed, p)
			}
		}
	}
	if len(prefixed) == 1 {
		return prefixed[0], nil
	}
	if len(prefixed) > 1 {
		return nil, ambiguous("pod", want.String(), prefixed, func(p *kube.Pod) string { return nameOf(p).String() })
	}
	hint := suggestion(want.name, names, "`kubectl get pods -n "+want.namespace+"` lists the pods")
	if len(elsewhere) > 0 {
		hint = "a pod of that name is in namespace " + cmdutil.JoinOr(elsewhere[:min(len(elsewhere), maxNames)]) + ": use -n"
	}
	return nil, cmdutil.NotFound("pod", want.String(), hint, nil)
}

// findNode returns the node with a name, or the only one with it as a prefix.
func findNode(d *kube.Dump, want string) (*kube.Node, error) {
	want = strings.TrimPrefix(strings.TrimPrefix(want, "node/"), "nodes/")
	var prefixed []*kube.Node
	var names []string
	for _, n := range d.Nodes {
		if n.Metadata.Name == want {
			return n, nil
		}
		names = append(names, n.Metadata.Name)
		if strings.HasPrefix(n.Metadata.Name, want) {
			prefixed = append(prefixed, n)
		}
	}
	if len(prefixed) == 1 {
		return prefixed[0], nil
	}
	if len(prefixed) > 1 {
		return nil, ambiguous("node", want, prefixed, func(n *kube.Node) string { return n.Metadata.Name })
	}
	return nil, cmdutil.NotFound("node", want, suggestion(want, names, "`kubectl get nodes` lists the nodes"), nil)
}

// ambiguous returns the error for a prefix of several names.
func ambiguous[T any](kind, want string, list []T, name func(T) string) error {
	var matches []string
	for _, o := range list[:min(len(list), maxNames)] {
		matches = append(matches, name(o))
	}
	if more := len(list) - len(matches); more > 0 {
		matches = append(matches, fmt.Sprintf("and %d more", more))
	}
	return cmdutil.Ambiguous(kind, want, matches)
}

// suggestion returns a hint with names that are similar, or otherwise the fallback.
func suggestion(name string, names []string, fallback string) string {
	if near := cmdutil.Suggest(name, names); len(near) > 0 {
		return suggest.Question(near[:min(len(near), maxNames)]...)
	}
	return fallback
}
