// Command guest serves the policy foresight as a WebAssembly module or a process.
package main

import (
	"github.com/cede-scheduler/cede/plugins/registry/testdata/foresight"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(foresight.New) }

func main() { serve.Serve() }
