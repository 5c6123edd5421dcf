// Command guest serves the policy named decay: a module of it with GOOS=wasip1
// GOARCH=wasm go build -buildmode=c-shared.
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
