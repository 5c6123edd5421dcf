package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
)

// A route is one operation of the API. The mux, the OpenAPI document and the
// authorization test are built from the same list of routes.
type route struct {
	methods []string // the first one is documented
	pattern string   // pattern of net/http.ServeMux
	name    string   // operationId; also used in metrics and logs
	doc     string   // summary, one or more sentences
	tag     string   // section in the document

	// roles lists the roles of which any one is sufficient; empty: no token is required.
	roles []acl.Role
	// scope limits the tokens that are restricted to a namespace.
	scope scope
	// leaderOnly routes are forwarded to the leader by the other servers.
	leaderOnly bool
	// isRead marks a route that changes nothing although its method is not GET, because
	// its input is a body.
	isRead bool

	isQuery  bool     // accepts the query parameters, and may block
	isPaged  bool     // accepts the pagination parameters
	params   []param  // additional parameters
	request  any      // zero value of the body's type; nil: none
	response any      // zero value of the response's type; nil: none
	isBinary bool     // the body of the request or the response is not JSON
	accepts  []string // content types of the body; nil: application/json

	handle handler
	// refuse answers a request that is not admitted; nil, or if it returns false: the
	// error is the response.
	refuse func(a *API, c *call, why error) bool
}

// changesNothing reports whether a request with this method only reads.
func (r *route) changesNothing(method string) bool { return method == http.MethodGet || r.isRead }

// A handler returns the value to encode as JSON, an error, or responded if it has
// written the response itself.
type handler func(a *API, c *call) (any, error)

// responded is the result of a handler that has written the response.
var responded = new(struct{ written bool })

// param is a query parameter of a single route.
type param struct{ name, kind, doc string } // kind is an OpenAPI type

// scope is the part of the cluster that a route accesses.
type scope int

const (
	scopeCluster   scope = iota // the whole cluster; closed to tokens that are restricted to a namespace
	scopeNamespace              // objects of one namespace
	scopePublic                 // nothing that belongs to a namespace or a caller
)

var (
	get        = []string{http.MethodGet}
	putMethods = []string{http.MethodPut, http.MethodPost} // Nomad's clients use either
	post       = []string{http.MethodPost, http.MethodPut}
	remove     = []string{http.MethodDelete}
)

// table returns every route.
func table() []route {
	return slices.Concat(
		jobRoutes(), allocRoutes(), evalRoutes(), nodeRoutes(), agentRoutes(),
		schedulerRoutes(), budgetRoutes(), policyRoutes(), policyModuleRoutes(), eventRoutes(), operatorRoutes(), poolRoutes(),
		tokenRoutes(), statusRoutes(), healthRoutes(), kubeRoutes(), kubeReportRoutes(),
		clusterRoutes(), bindingRoutes(), namespaceRoutes(), comparisonRoutes(), nomadRoutes(),
	)
}

// mux returns the mux of all routes. If a path exists only under other methods, the
// error lists those; if it does not exist, the response is 404.
func (a *API) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range a.routes {
		r := &a.routes[i]
		for _, m := range r.methods {
			mux.Handle(m+" "+r.pattern, a.serve(r))
		}
	}
	mux.Handle("GET /v1/node/pools", a.serve(&unknown)) // otherwise the path of a node with this ID
	mux.Handle("/", a.serve(&unknown))
	return mux
}

var unknown = route{name: "unknown", pattern: "/", scope: scopePublic, handle: notFound}

// unclean handles paths that the mux would redirect.
var unclean = route{
	name: "unknown", pattern: "/", scope: scopePublic,
	handle: func(_ *API, c *call) (any, error) {
		return nil, rest.NotFound("unknown path %s", rest.Quote(c.r.URL.Path)).WithHint("the path has empty or dot segments: escape a slash in an ID as %%2F")
	},
}

// notFound handles requests without a route.
func notFound(a *API, c *call) (any, error) {
	if u := unsupportedOperation(c.r.URL.EscapedPath()); u != nil {
		f := rest.Unsupported("%s not supported", u.what)
		f.Hint = u.hint
		return nil, f
	}
	allowed := a.methodsFor(c.r)
	if len(allowed) == 0 {
		return nil, rest.NotFound("unknown path %s", rest.Quote(c.r.URL.Path)).WithHint("GET /v1/openapi.json lists all paths")
	}
	list := strings.Join(allowed, ", ")
	c.w.Header().Set("Allow", list)
	f := rest.Invalid("method %s is not allowed at %s: it must be %s", c.r.Method, rest.Quote(c.r.URL.Path), list)
	f.Status = http.StatusMethodNotAllowed
	return nil, f
}

// methodsFor returns the methods under which the path of the request exists.
func (a *API) methodsFor(r *http.Request) []string {
	var list []string
	for _, m := range []string{http.MethodDelete, http.MethodGet, http.MethodPost, http.MethodPut} {
		other := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := a.routed.Handler(other); pattern != "/" && pattern != "" {
			list = append(list, m)
		}
	}
	return list
}
