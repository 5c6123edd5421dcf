package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobValidateCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a job file",
		Long: `Check a job file, and tell everything that is wrong with it. No server is asked,
unless --server is given: it knows whether a priority class and a policy exist.

Exits 2 when something is wrong.`,
		Example: "  cede job validate web.hcl\n  cede job validate web.hcl --var count=3 -o yaml",
		Args:    arguments(1, 1, "one job file"),
	}
	out, conn, file := outputFlags(cmd, env), serverFlags(cmd, env), jobFileFlags(cmd, env)
	ask := cmd.Flags().Bool("server", false, "ask the server as well")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		read, err := file.read(args[0], conn.namespace)
		if err != nil {
			return err
		}
		if *ask {
			if err := conn.validate(cmd, read); err != nil {
				return err
			}
		}
		full := read.full()
		return out.show(document{data: full, names: []string{full.ID}, page: func(p page) {
			tasks := 0
			for _, g := range full.TaskGroups {
				tasks += len(g.Tasks)
			}
			p.printf("%s: job %s is valid: %s, %s\n", read.name, full.ID, count(len(full.TaskGroups), "group", "groups"), count(tasks, "task", "tasks"))
		}})
	}
	return cmd
}

// validate asks the server.
func (c *connection) validate(cmd *cobra.Command, read *readJob) error {
	api, err := c.dial()
	if err != nil {
		return err
	}
	answer, err := api.Jobs().Validate(cmd.Context(), read.job)
	if err != nil {
		return interruptedBy(cmd.Context(), err)
	}
	if answer.Warnings != "" {
		c.env.warn(answer.Warnings)
	}
	problems := answer.ValidationErrors
	if len(problems) == 0 && answer.Error != "" {
		problems = []string{answer.Error}
	}
	if len(problems) == 0 {
		return nil
	}
	return &Error{
		Exit: ExitUsage, Code: client.CodeInvalid, lines: problems, Details: map[string]any{"Problems": problems},
		Message: fmt.Sprintf("the server finds %s in %s", count(len(problems), "problem", "problems"), read.name),
		Hint:    "`cede help jobs` describes job files",
	}
}
