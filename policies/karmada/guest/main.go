// Command guest serves the policy karmada as a WebAssembly module or a process.
package main

import (
	"github.com/cede-scheduler/cede/policies/karmada"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(func() policy.Policy { return karmada.New() }) }

func main() { serve.Serve() }
