// Command guest serves the policy nomad as a WebAssembly module or a process.
package main

import (
	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(func() policy.Policy { return nomad.New() }) }

func main() { serve.Serve() }
