// Package client is cede's HTTP API for Go programs: its types, one method per
// operation, errors with a code and a hint, blocking queries, and an event stream
// that resumes after a lost connection. Field names are Nomad's if Nomad has the
// field. It imports the standard library only.
//
// It caches no results and applies no defaults: the server validates requests and
// fills in defaults. It repeats a request only if that is safe: a read, or a write
// with an idempotency key, which registering and stopping a job always have, or one
// that has the same effect twice.
//
//	c, err := client.New(client.FromEnv())
//	jobs, _, err := c.Jobs().List(ctx, nil)
//
// Programs outside this repository, the command line and the node agent use it. A
// Client is safe for concurrent use.
package client
