package job

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobValidateCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a job file",
		Long: `Check a job file and report every problem. With --server, a server also checks that the
priority class and the policy exist; without it, no server is contacted.

The job is not registered.`,
		Example: "  cede job validate web.hcl\n  cede job validate web.hcl --var count=3 -o yaml",
		Args:    cmdutil.PositionalArgs(1, 1, "one job file"),
	}
	out, conn, file := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env), jobFileFlags(cmd, env)
	ask := cmd.Flags().Bool("server", false, "also validate on a server")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		read, err := file.read(args[0], conn.Namespace)
		if err != nil {
			return err
		}
		if *ask {
			if err := validateOnServer(conn, cmd, read); err != nil {
				return err
			}
		} else if warnings := jobspec.Warnings(read.job, read.model); len(warnings) > 0 {
			env.Warn(strings.Join(warnings, "\n"))
		}
		full := read.full()
		return out.Show(cmdutil.Document{Data: full, Names: []string{full.ID}, Page: func(p cmdutil.Page) {
			tasks := 0
			for _, g := range full.TaskGroups {
				tasks += len(g.Tasks)
			}
			p.Printf("%s: job %s is valid: %s, %s\n", read.name, full.ID, cmdutil.Count(len(full.TaskGroups), "group", "groups"), cmdutil.Count(tasks, "task", "tasks"))
		}})
	}
	return cmd
}

// validateOnServer validates the job on the server.
func validateOnServer(c *cmdutil.Connection, cmd *cobra.Command, read *readJob) error {
	api, err := c.Dial()
	if err != nil {
		return err
	}
	answer, err := api.Jobs().Validate(cmd.Context(), read.job)
	if err != nil {
		return cmdutil.InterruptError(cmd.Context(), err)
	}
	if answer.Warnings != "" {
		c.Env.Warn(answer.Warnings)
	}
	problems := answer.ValidationErrors
	if len(problems) == 0 && answer.Error != "" {
		problems = []string{answer.Error}
	}
	if len(problems) == 0 {
		return nil
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitUsage, Code: client.CodeInvalid, Lines: problems, Details: map[string]any{"Problems": problems},
		Message: fmt.Sprintf("the server found %s in %s", cmdutil.Count(len(problems), "problem", "problems"), read.name),
		Hint:    "`cede help jobs` describes job files",
	}
}
