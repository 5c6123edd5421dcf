package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
)

// route is one thing that can be asked for. The mux, the OpenAPI document and
// the test of authorization are made of the same list of routes.
type route struct {
	methods []string // of which the first is the one that is documented
	pattern string   // of net/http's mux
	name    string   // operationId, and what metrics and logs call it
	doc     string   // a sentence
	tag     string   // heading in the document

	// roles are those of which any one suffices; none: everybody may, without a
	// token.
	roles []acl.Role
	// scope is what a token that is bound to a namespace may reach by it.
	scope scope
	// leaderOnly is whether only the leader can answer: others pass the request on.
	leaderOnly bool

	reads    bool    // takes the parameters of queries, and may block
	paged    bool    // takes those of pages
	params   []param // further ones
	request  any     // zero value of the body's type; nil: none
	response any     // zero value of the answer's type; nil: none
	binary   bool    // the request's body or the answer is no JSON

	handle handler
}

// handler answers a request: with what is to be written as JSON, with an error,
// or with done when it wrote the answer by itself.
type handler func(a *API, c *call) (any, error)

// responded says that the answer was written.
var responded = new(struct{ written bool })

// param is a parameter of a query, beyond the usual ones.
type param struct{ name, kind, doc string } // kind is one of OpenAPI's

// scope is what of the cluster a route is about.
type scope int

const (
	scopeCluster   scope = iota // everything: tokens that are bound to a namespace have no business here
	scopeNamespace              // one namespace, or what belongs to one
	scopePublic                 // nothing that is anybody's
)

var (
	get        = []string{http.MethodGet}
	putMethods = []string{http.MethodPut, http.MethodPost} // Nomad's clients use one or the other
	post       = []string{http.MethodPost, http.MethodPut}
	remove     = []string{http.MethodDelete}
)

// table is every route.
func table() []route {
	return slices.Concat(
		jobRoutes(), allocRoutes(), evalRoutes(), nodeRoutes(), agentRoutes(),
		schedulerRoutes(), budgetRoutes(), policyRoutes(), policyModuleRoutes(), eventRoutes(), operatorRoutes(), poolRoutes(),
		tokenRoutes(), statusRoutes(), healthRoutes(), kubeRoutes(),
		clusterRoutes(), bindingRoutes(), namespaceRoutes(),
	)
}

// wildcards are the names in braces of a pattern, in order.
func (r *route) wildcards() []string {
	var names []string
	for part := range strings.SplitSeq(r.pattern, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

// mux is the routes' mux. A path that is known under other methods is answered
// with those, one that is not known with 404, both as errors of the API.
func (a *API) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range a.routes {
		r := &a.routes[i]
		for _, m := range r.methods {
			mux.Handle(m+" "+r.pattern, a.serve(r))
		}
	}
	mux.Handle("/", a.serve(&unknown))
	return mux
}

var unknown = route{name: "unknown", pattern: "/", scope: scopePublic, handle: notFound}

// unclean answers paths that the mux would redirect.
var unclean = route{
	name: "unknown", pattern: "/", scope: scopePublic,
	handle: func(_ *API, c *call) (any, error) {
		return nil, rest.NotFound("unknown path %s", rest.Quote(c.r.URL.Path)).WithHint("the path has empty or dot segments: escape a slash in an ID as %%2F")
	},
}

// notFound answers what no route is for.
func notFound(a *API, c *call) (any, error) {
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

// methodsFor lists the methods under which the path of a request is known.
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
