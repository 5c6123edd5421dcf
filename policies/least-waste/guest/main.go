// Command guest serves the policy least-waste as a WebAssembly module or a process.
package main

import (
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(func() policy.Policy { return leastwaste.New() }) }

func main() { serve.Serve() }
