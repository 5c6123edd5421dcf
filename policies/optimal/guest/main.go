// Command guest serves the policy optimal as a WebAssembly module or a process.
package main

import (
	"github.com/cede-scheduler/cede/policies/optimal"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(func() policy.Policy { return optimal.New() }) }

func main() { serve.Serve() }
