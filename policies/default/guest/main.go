// Command guest serves the policy default as a WebAssembly module or a process.
package main

import (
	defaults "github.com/cede-scheduler/cede/policies/default"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(defaults.New) }

func main() { serve.Serve() }
