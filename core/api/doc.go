// Package api owns the HTTP API under /v1: the table of routes, from which the mux,
// the OpenAPI document and the authorization test are built; the conversion between
// the model and the JSON of the API; and the protection of a server from its clients:
// tokens, deadlines, and limits of size, depth, rate and number.
//
// It makes no decisions and holds no cluster state. It reads snapshots, and writes by
// calling the server. core/jobspec validates jobs.
//
// cmd creates one API per process and serves its HTTPServer. An API is safe for
// concurrent use. DESIGN.md describes the path of a request and the compatibility
// with Nomad.
package api
