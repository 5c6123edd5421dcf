// Command guest serves the policy protect as a WebAssembly module or a process.
package main

import (
	"github.com/cede-scheduler/cede/policies/protect"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(func() policy.Policy { return protect.New() }) }

func main() { serve.Serve() }
