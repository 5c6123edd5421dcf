package policy

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/sdk/client"
)

// namedVersion parses N@V.
func namedVersion(cmd *cobra.Command, arg string) (name, version string, err error) {
	name, version, found := strings.Cut(arg, "@")
	if !found || name == "" || version == "" {
		return "", "", cmdutil.Usagef("`cede policy status "+cmp.Or(name, "N")+"` lists versions; a unique prefix is sufficient",
			"%s requires N@V, a policy and a version: invalid argument %q", cmd.CommandPath(), arg)
	}
	return name, version, nil
}

// notPolicy returns the error of an argument that is neither N nor N@V.
func notPolicy(cmd *cobra.Command, arg string) error {
	return cmdutil.Usagef("`cede policy list` lists policies; a unique prefix of a version is sufficient", "%s requires N or N@V: invalid argument %q", cmd.CommandPath(), arg)
}

// ofPolicy returns the error of a server in the form of the command line. If the policy
// failed, its exit code is ExitPolicy.
func ofPolicy(err error) error {
	answer, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	e := cmdutil.ServerError(answer)
	e.Lines = nil // the message includes them
	if problems, several := answer.Details["Problems"]; several {
		e.Lines = cmdutil.DetailLines(map[string]any{"Problems": problems})
		e.Message = fmt.Sprintf("%d problems", len(e.Lines))
	}
	if _, fault := answer.Details["Fault"]; fault {
		e.Exit = cmdutil.ExitPolicy
	}
	if strings.Contains(answer.Error(), ": unknown setting; use one of") {
		text := strings.Join(append([]string{e.Message}, e.Lines...), "\n")
		e.Hint = cmp.Or(policyflags.SettingHint(text), e.Hint, "`cede policy inspect P` lists the settings of a policy")
	}
	return e
}

// changed returns the document of a change of versions.
func changed(st *client.PolicyStatus, version, words string) cmdutil.Document {
	return cmdutil.MessageDocument(st, policyflags.VersionName(st.Name, version), "%s", words)
}

// when formats a time of a server as text.
func when(nanoseconds int64) string {
	if nanoseconds == 0 {
		return ""
	}
	return time.Unix(0, nanoseconds).Local().Format(time.DateTime)
}
