package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestServerScripts plays scripts against a server and a node in a process of
// their own.
func TestServerScripts(t *testing.T) {
	agent := runAgent(t)
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir:                 "testdata/server",
			RequireExplicitExec: true,
			RequireUniqueNames:  true,
			UpdateScripts:       os.Getenv("UPDATE") != "",
			Setup: func(env *testscript.Env) error {
				env.Setenv("CEDE_ADDR", agent.c.Address())
				return nil
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		})
	})
	agent.signal(os.Interrupt)
	if err := agent.end(); err != nil {
		t.Error(err)
	}
}
