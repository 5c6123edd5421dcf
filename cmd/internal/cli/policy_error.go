package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/toolchain"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// policyError gives an error about policy p its exit code: 7 where the policy is
// at fault, 2 where what is on disk or on the command line is.
func policyError(p string, err error) error {
	var (
		own     *Error
		unknown *policies.UnknownError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own), errors.As(err, &unknown), errors.Is(err, context.Canceled):
		return err
	}
	if fault, ok := errors.AsType[*policy.Error](err); ok {
		return &Error{Exit: ExitPolicy, Code: codePolicy, Message: withoutHint(err, fault), Hint: fault.Hint, err: err}
	}
	e := &Error{Exit: ExitUsage, Code: codeInvalid, Message: err.Error(), err: err}
	if path, ok := err.(*fs.PathError); ok { //nolint:errorlint // what is wrapped has more to say
		e.Message = fmt.Sprintf("%s: %v", path.Path, path.Err)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) > 1 {
		e.lines, e.Details = lines, lines
		e.Message = fmt.Sprintf("%s has %d problems", p, len(lines))
	}
	if errors.Is(err, bundle.ErrNotBuilt) {
		e.Hint = "cede policy build " + p
	}
	return e
}

// withoutHint is what an error says, less the hint that its fault adds.
func withoutHint(err error, fault *policy.Error) string {
	if fault.Hint == "" {
		return err.Error()
	}
	return strings.TrimSuffix(err.Error(), " ("+fault.Hint+")")
}

// buildError is why a policy could not be built.
func buildError(dir string, err error) error {
	if missing, ok := errors.AsType[*toolchain.MissingError](err); ok {
		return &Error{Exit: ExitError, Code: codeError, Message: missing.Error(), Hint: missing.Hint(), err: err}
	}
	if failed, ok := errors.AsType[*toolchain.CompileError](err); ok {
		lines := strings.Split(failed.Output, "\n")
		return &Error{Exit: ExitError, Code: codeError, Message: fmt.Sprintf("%s cannot be built: %v", dir, failed), Details: lines, lines: lines, err: err}
	}
	return policyError(dir, err)
}
