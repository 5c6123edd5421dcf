// Command guest serves the policy aging as a WebAssembly module or a process.
package main

import (
	"github.com/cede-scheduler/cede/policies/aging"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(func() policy.Policy { return aging.New() }) }

func main() { serve.Serve() }
