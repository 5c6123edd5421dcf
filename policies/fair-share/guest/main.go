// Command guest serves the policy fair-share as a WebAssembly module or a process.
package main

import (
	fairshare "github.com/cede-scheduler/cede/policies/fair-share"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(func() policy.Policy { return fairshare.New() }) }

func main() { serve.Serve() }
