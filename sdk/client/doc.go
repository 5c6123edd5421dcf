// Package client is cede's HTTP API for Go programs: its types, one method for
// each thing a server does, errors with a code and a remedy, blocking queries,
// and an event stream that resumes where it broke off. Field names are Nomad's
// where Nomad has the thing. It needs the standard library alone.
//
// It keeps nothing of what it reads, and decides nothing: defaults and
// validation are the server's. It repeats a request by itself only where that
// cannot do harm: reads, and writes that carry an idempotency key (which
// registering and stopping a job always do).
//
//	c, err := client.New(client.FromEnv())
//	jobs, _, err := c.Jobs().List(ctx, nil)
//
// Programs outside this repository, the command line and the node agent call
// it. A Client is safe for concurrent use.
package client
