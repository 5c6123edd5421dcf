package api

import (
	"io"
	"net/http"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/kube/extender"
)

const tagKube = "kubernetes"

// maxKube bounds the body of a request of kube-scheduler, in bytes: unless the
// extender keeps nodes itself, filter carries every node of the cluster, whole.
const maxKube = 512 << 20

// kubeRoutes are kube-scheduler's, whose paths and documents are not ours to
// choose. Each server answers for itself: kube-scheduler asks one.
func kubeRoutes() []route {
	operator := []acl.Role{acl.Operate}
	made := func(v extender.Verb, methods []string, response any, doc string, params ...param) route {
		return route{
			methods: methods, pattern: "/kube/v1/" + string(v), name: "kube_" + string(v), tag: tagKube, roles: operator,
			doc: doc, params: params, request: map[string]any{}, response: response, binary: true,
			handle: func(a *API, c *call) (any, error) { return kubeVerb(a, c, v) },
		}
	}
	once := []string{http.MethodPost}
	return []route{
		made(extender.Filter, once, map[string]any{}, "kube-scheduler's extender, filter: leaves out the nodes on which the scheduler would not place the pod without evicting anybody."),
		made(extender.Prioritize, once, []map[string]any{}, "kube-scheduler's extender, prioritize: scores nodes 0 to 10 as the scheduler ranks them for the pod."),
		made(extender.Preempt, once, map[string]any{}, "kube-scheduler's extender, preempt: the active policy chooses the node and the victims. What it cannot decide stays as proposed.",
			param{"nodes", "string", "all: victims for every node, of which kube-scheduler chooses; default: the node that the policy chooses"},
			param{"onFault", "string", "none: nobody is evicted where the policy cannot be asked; default: what was proposed stands"}),
		made(extender.Bind, once, map[string]any{}, "kube-scheduler's extender, bind: binds through the API server of Kubernetes, where the server runs in its cluster."),
		made(extender.Objects, putMethods, map[string]any{}, "Tells the extender of a Kubernetes cluster: what kubectl get -o json writes, or events of a watch.",
			param{"replace", "boolean", "it is the whole cluster: what was known is forgotten"}),
	}
}

func kubeVerb(a *API, c *call, v extender.Verb) (any, error) {
	if a.cfg.Kube == nil {
		return nil, rest.NotFound("this server answers no kube-scheduler").WithHint("ask a server that was started with cede agent")
	}
	c.r.Body = io.NopCloser(c.limitedBody(maxKube, a.cfg.Limits.Upload))
	a.cfg.Kube.Serve(v, c.w, c.r)
	c.endBody()
	return responded, nil
}
