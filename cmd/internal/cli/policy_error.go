package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/toolchain"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
)

// rewrite begins the advice that the last line of an error about a manifest is.
const rewrite = "write it again with "

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
		return faultError(err, fault)
	}
	e := &Error{Exit: ExitUsage, Code: codeInvalid, Message: err.Error(), err: err}
	if text, bad := badSignature(err); bad {
		e.Message, e.Hint = text, "cede policy sign "+p+" --key FILE"
	}
	if path, ok := err.(*fs.PathError); ok { //nolint:errorlint // what is wrapped has more to say
		e.Message = fmt.Sprintf("%s: %v", path.Path, path.Err)
	}
	lines := strings.Split(err.Error(), "\n")
	if last := len(lines) - 1; last > 0 && strings.HasPrefix(lines[last], rewrite) { // advice is no problem
		e.Message, e.Hint, lines = lines[0], lines[last], lines[:last]
	}
	if len(lines) > 1 {
		e.lines, e.Details = lines, lines
		e.Message = fmt.Sprintf("%s has %d problems", p, len(lines))
	}
	if errors.Is(err, bundle.ErrNotBuilt) {
		e.Hint = "cede policy build " + p
	}
	return e
}

// faultError is a policy's fault. What is no module at all is a file that does not
// validate: nothing of it was ever asked.
func faultError(err error, fault *policy.Error) *Error {
	e := &Error{Exit: ExitPolicy, Code: codePolicy, Message: withoutHint(err, fault), Hint: fault.Hint, err: err}
	if errors.Is(err, meter.ErrMalformed) || errors.Is(err, meter.ErrUnsupported) {
		e.Exit, e.Code = ExitUsage, codeInvalid
	}
	return e
}

// badSignature is whether a file of a signature cannot be read as one, and what
// to say of it.
func badSignature(err error) (text string, bad bool) {
	text = err.Error()
	file, _, found := strings.Cut(text, bundle.SignatureFile+": ")
	if !found || !strings.HasSuffix(text, "; sign the policy again") {
		return text, false
	}
	if errors.Unwrap(err) != nil { // what JSON has to say helps nobody
		text = file + bundle.SignatureFile + " is no signature; sign the policy again"
	}
	return text, true
}

// altered is whether a bundle cannot be opened although its manifest is sound and
// its files can be read: the module or the signature is not what it was.
func altered(dir string, err error) bool {
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable || errors.Is(err, bundle.ErrNotBuilt) {
		return false
	}
	m, _, bad := bundle.ReadManifest(dir)
	return bad == nil && m.Digest != ""
}

// withoutHint is what an error says, less the hint that its fault adds.
func withoutHint(err error, fault *policy.Error) string {
	if fault.Hint == "" {
		return err.Error()
	}
	return strings.TrimSuffix(err.Error(), " ("+fault.Hint+")")
}

// openPolicy makes a version of a policy, and warns where its module is older
// than what it is made of.
func (env *Env) openPolicy(ctx context.Context, r policies.Request) (*policies.Policy, error) {
	p, err := env.Policies.Open(ctx, r)
	if err == nil && p.Bundle != nil {
		env.warnStale(p.Bundle)
	}
	return p, err
}

// warnStale warns once of a module that is older than what it is made of.
func (env *Env) warnStale(b *bundle.Bundle) {
	source := toolchain.Stale(b)
	if source == "" {
		return
	}
	if _, told := env.stale.LoadOrStore(b.Dir, true); !told {
		env.warn(fmt.Sprintf("%s is newer than %s, which is used as it is; cede policy build %s",
			filepath.ToSlash(source), filepath.ToSlash(b.Path), filepath.ToSlash(b.Dir)))
	}
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
