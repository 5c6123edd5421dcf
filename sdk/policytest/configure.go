package policytest

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// Configured configures p with a JSON object of settings, as a host does.
func Configured[P policy.Configurable](t testing.TB, p P, config string) P {
	t.Helper()
	c, err := settings.Read(p.Settings(), []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Configure(c); err != nil {
		t.Fatal(err)
	}
	return p
}
