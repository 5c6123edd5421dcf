// Command guest serves the policy named decay. GOOS=wasip1 GOARCH=wasm go build
// -buildmode=c-shared builds it as a module.
package main

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/decay"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() {
	serve.Version = "1"
	serve.Register(func() policy.Policy { return decay.New() })
}

func main() { serve.Serve() }
