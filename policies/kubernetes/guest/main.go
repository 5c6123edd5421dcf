// Command guest serves the policy kubernetes as a WebAssembly module or a process.
package main

import (
	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(func() policy.Policy { return kubernetes.New() }) }

func main() { serve.Serve() }
