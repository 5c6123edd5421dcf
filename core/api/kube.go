package api

import (
	"errors"
	"io"
	"net/http"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagKube = "kubernetes"

// maxKube limits the body of a request of kube-scheduler, in bytes. Unless the
// extender is configured to cache nodes, filter sends every node of the cluster.
const maxKube = 512 << 20

// kubeTypes lists the content types of kube-scheduler and of the output of kubectl.
var kubeTypes = []string{"application/json", "application/yaml", "application/octet-stream"}

// kubeRoutes returns the routes of kube-scheduler's extender protocol, which defines
// the paths and documents. Requests are not forwarded: kube-scheduler calls one
// server.
func kubeRoutes() []route {
	scheduler := []acl.Role{acl.Kubernetes}
	verb := func(v extender.Verb, methods []string, response any, doc string, params ...param) route {
		refuse := kubeRefusal
		if v == extender.Objects {
			refuse = nil
		}
		return route{
			methods: methods, pattern: "/kube/v1/" + string(v), name: "kube_" + string(v), tag: tagKube, roles: scheduler, refuse: refuse,
			doc: doc, params: params, request: map[string]any{}, response: response, isBinary: true, accepts: kubeTypes,
			handle: func(a *API, c *call) (any, error) { return kubeVerb(a, c, v) },
		}
	}
	once := []string{http.MethodPost}
	return []route{
		verb(extender.Filter, once, map[string]any{}, "Extender of kube-scheduler, filter: removes the nodes on which the scheduler cannot place the pod without evictions."),
		verb(extender.Prioritize, once, []map[string]any{}, "Extender of kube-scheduler, prioritize: scores nodes from 0 to 10 by the scheduler's rank for the pod."),
		verb(extender.Preempt, once, map[string]any{}, "Extender of kube-scheduler, preempt: the active policy chooses the node and the victims. If it cannot decide, the proposed victims are kept.",
			param{"nodes", "string", "all: return victims for every node and let kube-scheduler choose; default: only the node that the policy chooses"},
			param{"onFault", "string", "none: evict nothing if the policy fails; default: keep the proposed victims"}),
		verb(extender.Bind, once, map[string]any{}, "Extender of kube-scheduler, bind: binds the pod through the Kubernetes API server, if the server runs in that cluster."),
		verb(extender.Objects, putMethods, map[string]any{}, "Loads the objects of a Kubernetes cluster into the extender: the output of kubectl get -o json, or watch events.",
			param{"replace", "boolean", "the body is the whole cluster: discard all earlier objects"}),
	}
}

// kubeRefusal answers a request of kube-scheduler that is not admitted with status 200.
// With any other status kube-scheduler writes the URL, and with it the token, into the
// status of the pod.
func kubeRefusal(a *API, c *call, why error) bool {
	if a.cfg.Kube == nil {
		return false
	}
	if f, ok := errors.AsType[*rest.Failure](why); !ok || f.Status != http.StatusUnsupportedMediaType {
		why = extender.ErrUnauthenticated
	}
	a.cfg.Kube.Refuse(c.w, c.r, why)
	c.endBody()
	return true
}

func kubeVerb(a *API, c *call, v extender.Verb) (any, error) {
	if a.cfg.Kube == nil {
		return nil, rest.NotFound("this server has no kube-scheduler extender").WithHint("use a server that was started with cede agent")
	}
	c.r.Body = io.NopCloser(c.limitedBody(maxKube, a.cfg.Limits.Upload))
	a.cfg.Kube.Serve(v, c.w, c.r)
	c.endBody()
	return responded, nil
}

// kubeReportRoutes returns the routes to which controllers of Kubernetes clusters report.
// Requests are not forwarded: a controller reports to one server.
func kubeReportRoutes() []route {
	reader := []acl.Role{acl.Read, acl.Kubernetes}
	return []route{
		{
			methods: putMethods, pattern: "/v1/kubernetes/controller/{id}", name: "kubernetes_report", tag: tagKube, roles: []acl.Role{acl.Kubernetes},
			doc:     "Stores the state of a controller (cede kubernetes) and its decisions since the last report, in the memory of the server that handles the request.",
			request: client.KubernetesReport{}, handle: storeKubeReport,
		},
		{
			methods: get, pattern: "/v1/kubernetes/controllers", name: "kubernetes_controllers", tag: tagKube, roles: reader,
			doc: "Lists the controllers that report to the server that handles the request, ordered by ID.", response: []*client.KubernetesController{},
			handle: func(a *API, c *call) (any, error) {
				if err := requireKubeReports(a, c); err != nil {
					return nil, err
				}
				return a.cfg.KubeReports.Controllers(), nil
			},
		},
		{
			methods: get, pattern: "/v1/kubernetes/decisions", name: "kubernetes_decisions", tag: tagKube, roles: reader,
			doc:    "Lists the decisions that controllers reported to the server that handles the request, newest first: at most 2,048, and at most 16 MiB.",
			params: []param{{"controller", "string", "only decisions of this controller"}}, response: []*client.KubernetesDecision{},
			handle: func(a *API, c *call) (any, error) {
				if err := requireKubeReports(a, c); err != nil {
					return nil, err
				}
				return a.cfg.KubeReports.Decisions(c.r.URL.Query().Get("controller")), nil
			},
		},
	}
}

func requireKubeReports(a *API, c *call) error {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	if a.cfg.KubeReports == nil {
		return rest.NotFound("this server stores no reports of controllers").WithHint("use a server that was started with cede agent")
	}
	return nil
}

func storeKubeReport(a *API, c *call) (any, error) {
	if err := requireKubeReports(a, c); err != nil {
		return nil, err
	}
	r := &client.KubernetesReport{}
	if err := c.decodeBody(r); err != nil {
		return nil, err
	}
	r.ID = c.r.PathValue("id")
	if err := a.cfg.KubeReports.Put(r); err != nil {
		return nil, rest.Invalid("%v", err)
	}
	return nil, nil
}
