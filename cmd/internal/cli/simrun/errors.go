package simrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// FormatProgress returns the progress of a run as one line.
func FormatProgress(name string, p sim.Progress, elapsed time.Duration) string {
	at := "at " + scenario.Duration(p.Now.Truncate(time.Second)).String()
	if p.Until > 0 {
		at += " of " + scenario.Duration(p.Until).String()
	}
	return term.ProgressLine(Share(p), elapsed, name, at, cmdutil.Thousands(p.Placed)+" placed",
		fmt.Sprintf("%s of %s events", cmdutil.Thousands(p.Steps), cmdutil.Thousands(p.StepsTotal)), elapsed.Round(time.Second).String())
}

// Share returns the share of a run that is done, from 0 to 1: of its virtual time if it has
// an end, otherwise of its events. It is negative if neither is known.
func Share(p sim.Progress) float64 {
	switch {
	case p.Until > 0:
		return float64(p.Now) / float64(p.Until)
	case p.StepsTotal > 0:
		return float64(p.Steps) / float64(p.StepsTotal)
	}
	return -1
}

// RunError returns the error of a valid file that cannot be run: usually a policy is
// unknown or refuses its configuration. replaced reports whether -p overrides the policy
// of the file.
func RunError(f *ScenarioFile, err error, replaced bool) error {
	var known *scenario.Error
	if errors.Is(err, context.Canceled) || errors.As(err, &known) {
		return err
	}
	if fault, ok := errors.AsType[*policy.Error](err); ok {
		e := policyflags.FaultError(err, fault)
		e.Message = fmt.Sprintf("cannot run %s: %s", f.Path, e.Message)
		return e
	}
	if endless, ok := errors.AsType[*sim.EndlessError](err); ok { // the file is valid
		return &cmdutil.Error{
			Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: fmt.Sprintf("cannot run %s: %s", f.Path, endless),
			Hint: "run with -p default to find out whether the policy causes the loop",
		}
	}
	if invalid := f.PolicyProblems(err, replaced); invalid != nil {
		return invalid
	}
	e := cmdutil.AsError(err)
	if e.Code == cmdutil.CodeError && errors.As(err, new(*cmdutil.Error)) { // such as a full disk
		return e
	}
	message, hint := e.Message, cmp.Or(e.Hint, policyflags.Hint(err))
	if missing, ok := errors.AsType[*fs.PathError](err); ok {
		message, hint = "policy "+cmdutil.FileMessage(missing), cmp.Or(policies.MissingHint(missing.Path), "check the path after -p")
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitUsage, Code: cmdutil.CodeUsage, Hint: hint,
		Message: fmt.Sprintf("cannot run %s: %s", f.Path, message),
	}
}

// maxFaults limits the failures that are printed, because they repeat.
const maxFaults = 5

// FaultsError returns an error that lists the failures of policies in a run, or nil if
// list is empty. onFault selects the hint.
func FaultsError(name string, list []error, onFault policy.OnFault) error {
	if len(list) == 0 {
		return nil
	}
	var lines []string
	for _, err := range list[:min(len(list), maxFaults)] {
		lines = append(lines, name+": "+err.Error())
	}
	if more := len(list) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %s more", name, cmdutil.Thousands(more)))
	}
	instead := "evaluations whose policy fails evict nothing"
	if onFault == policy.FallBack {
		instead = "the policy default decided instead"
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitPolicy, Code: cmdutil.CodePolicy, Details: lines, Lines: lines,
		Message: fmt.Sprintf("%s: a policy failed %s", name, cmdutil.Times(len(list))),
		Hint:    instead + "; correct the policy, or select another with -p",
	}
}

// Maximum number of entries in text output; -o wide and -o json are complete.
const (
	MaxRunRows = 20
	MaxVictims = 6
)
