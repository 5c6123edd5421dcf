// Package api owns the HTTP API under /v1: one table of routes, from which the
// mux, the OpenAPI document and the test of authorization are made; the
// translation between the engine's nouns and the API's JSON; and what protects a
// server from its callers: tokens, limits of size, depth, rate and number, and
// deadlines.
//
// It never decides anything and keeps no state of the cluster: it reads
// snapshots, and writes by calling the server. Whether a job makes sense is
// core/jobspec's to say.
//
// cmd makes one API for each process and serves HTTPServer. An API is safe for
// concurrent use; DESIGN.md tells how a request travels and what is compatible
// with Nomad.
package api
