package api

import (
	"net/http"
	"strconv"

	"github.com/cede-scheduler/cede/core/acl"
)

// The headers that say what a module is.
const (
	headerPolicyVersion = "X-Cede-Policy-Version"
	headerPolicyDigest  = "X-Cede-Policy-Digest"
)

// policyModuleRoutes send the code of policies: to those who may read a cluster's
// inside, or bring policies to it, and not to all who may read what is decided.
func policyModuleRoutes() []route {
	return []route{{
		methods: get, pattern: "/v1/policy/{name}/module", name: "policy_module", tag: tagPolicies, roles: []acl.Role{acl.Operate, acl.Policy}, binary: true,
		doc: "Sends the WebAssembly module of a version. The headers " + headerPolicyVersion + " and " + headerPolicyDigest +
			" say which version it is, and what its bytes hash to.",
		params: []param{{"version", "string", "id of the version, or a prefix of it that is unique; absent: the active one, or else the only one"}},
		handle: policyModule,
	}}
}

// policyModule sends a module as it is.
func policyModule(a *API, c *call) (any, error) {
	c.meta(a.cfg.Server.Snapshot())
	v, module, err := a.cfg.Server.PolicyModule(c.r.Context(), c.r.PathValue("name"), c.r.URL.Query().Get("version"))
	if err != nil {
		return nil, err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/wasm")
	h.Set("Content-Length", strconv.Itoa(len(module)))
	h.Set(headerPolicyVersion, v.ID)
	h.Set(headerPolicyDigest, v.Digest)
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(module) // a client that went away
	return done, nil
}
