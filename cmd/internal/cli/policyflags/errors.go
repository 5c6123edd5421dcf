package policyflags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/toolchain"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/suggest"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/rules"
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
)

// rewrite is the prefix of the hint in the last line of an error about a manifest.
const rewrite = "run `cede policy build` to update"

// Hint returns the remedy for settings that a policy refuses; "": the error is another one.
func Hint(err error) string {
	if hint := SettingHint(err.Error()); hint != "" {
		return hint
	}
	if strings.Contains(err.Error(), ": configuration: ") {
		return "correct the setting or remove it; `cede policy inspect P` lists the settings"
	}
	return ""
}

// unknownSetting matches the problem of an unknown setting, with the valid ones.
var unknownSetting = regexp.MustCompile(`(\S+): unknown setting; use one of (.*)`)

// SettingHint returns the setting that was probably meant, if exactly one in the text of an
// error is unknown and similar to a valid one; otherwise "".
func SettingHint(text string) string {
	found := unknownSetting.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		return ""
	}
	return suggest.DidYouMean(found[0][1], strings.Split(found[0][2], ", "), "")
}

// WrapError gives an error about policy p its exit code: ExitPolicy if the policy failed,
// ExitUsage if files or the command line are invalid.
func WrapError(p string, err error) error {
	var (
		own     *cmdutil.Error
		unknown *policies.UnknownError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own), errors.As(err, &unknown), errors.Is(err, context.Canceled):
		return err
	}
	if fault, ok := errors.AsType[*policy.Error](err); ok {
		return FaultError(err, fault)
	}
	if invalid, ok := errors.AsType[*rules.Error](err); ok {
		return rulesError(p, err, invalid)
	}
	e := &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: err.Error(), Hint: Hint(err), Err: err}
	if text, bad := BadSignature(err); bad {
		e.Message, e.Hint = text, "cede policy sign "+p+" --key FILE"
	}
	if path, ok := err.(*fs.PathError); ok { //nolint:errorlint // the wrapped error has more detail
		e.Message, e.Hint = cmdutil.FileMessage(path), cmp.Or(policies.MissingHint(path.Path), "check the path of the policy")
	}
	if problem, remedy, ok := strings.Cut(e.Message, "; run `"); ok {
		e.Message, e.Hint = problem, "run `"+remedy
	}
	lines := strings.Split(err.Error(), "\n")
	if last := len(lines) - 1; last > 0 && strings.HasPrefix(lines[last], rewrite) { // advice is not a problem
		e.Message, e.Hint, lines = lines[0], lines[last], lines[:last]
	}
	if len(lines) > 1 {
		e.Lines, e.Details = lines, lines
		e.Message = fmt.Sprintf("%s has %d problems", p, len(lines))
	}
	if _, ok := errors.AsType[*bundle.NotPolicyError](err); ok {
		e.Hint = "use a .wasm module, an executable, or the folder of a policy: `cede policy init` creates one"
	}
	if missing, ok := errors.AsType[*bundle.NotBuiltError](err); ok {
		e.Hint = "cede policy build " + missing.Dir
	}
	return e
}

// rulesError returns the error of invalid rules, with every problem and its position, after
// the lines of err about other fields of the manifest.
func rulesError(p string, err error, invalid *rules.Error) *cmdutil.Error {
	var others []string
	if text, ok := strings.CutSuffix(err.Error(), "\n"+invalid.Error()); ok {
		others = strings.Split(text, "\n")
	}
	details := slices.Clone(others)
	for i := range invalid.Problems {
		details = append(details, invalid.Problems[i].String())
	}
	if strings.HasPrefix(p, rules.Prefix) {
		p = "the rules"
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Err: invalid, Details: details,
		Message: fmt.Sprintf("%s: %s", p, cmdutil.Count(len(details), "problem", "problems")),
		Hint:    "docs/reference/rules.md describes the language",
		Lines:   append(others, strings.Split(invalid.Error(), "\n")...),
	}
}

// FaultError returns the error of a policy that failed. A file that is not a module is
// invalid input instead, because none of its code ran.
func FaultError(err error, fault *policy.Error) *cmdutil.Error {
	e := &cmdutil.Error{Exit: cmdutil.ExitPolicy, Code: cmdutil.CodePolicy, Message: withoutHint(err, fault), Hint: fault.Hint, Err: err}
	if errors.Is(err, meter.ErrMalformed) || errors.Is(err, meter.ErrUnsupported) {
		e.Exit, e.Code = cmdutil.ExitUsage, cmdutil.CodeInvalid
	}
	return e
}

// BadSignature reports whether err means that a signature file cannot be parsed, and
// returns the message for it.
func BadSignature(err error) (text string, bad bool) {
	text = err.Error()
	file, _, found := strings.Cut(text, bundle.SignatureFile+": ")
	if !found || !strings.HasSuffix(text, "; sign the policy again") {
		return text, false
	}
	if errors.Unwrap(err) != nil { // the JSON decoder's own error does not help users
		text = file + bundle.SignatureFile + " is not a valid signature; sign the policy again"
	}
	return text, true
}

// IsAltered reports whether a bundle cannot be opened although its manifest is valid and
// its files are readable: the module or the signature was changed.
func IsAltered(dir string, err error) bool {
	_, unreadable := errors.AsType[*fs.PathError](err)
	if _, missing := errors.AsType[*bundle.NotBuiltError](err); unreadable || missing {
		return false
	}
	m, _, bad := bundle.ReadManifest(dir)
	return bad == nil && m.Digest != ""
}

// withoutHint returns the text of an error without the hint of its fault.
func withoutHint(err error, fault *policy.Error) string {
	if fault.Hint == "" {
		return err.Error()
	}
	return strings.TrimSuffix(err.Error(), " ("+fault.Hint+")")
}

// OpenPolicy opens a version of a policy, and prints a warning if its module is older than
// its sources.
func OpenPolicy(ctx context.Context, env *cmdutil.Env, r policies.Request) (*policies.Policy, error) {
	p, err := env.Policies.Open(ctx, r)
	if err == nil && p.Bundle != nil {
		WarnStale(env, p.Bundle)
	}
	return p, err
}

// WarnStale prints a warning, once per folder, if a module is older than its sources, or a
// signature is of another manifest.
func WarnStale(env *cmdutil.Env, b *bundle.Bundle) {
	source, outdated := toolchain.Stale(b), b.CheckSignature()
	if source == "" && outdated == nil {
		return
	}
	if _, warned := env.StaleWarned.LoadOrStore(b.Dir, true); warned {
		return
	}
	if outdated != nil {
		env.Warn(outdated.Error())
	}
	if source != "" {
		env.Warn(fmt.Sprintf("%s is newer than the module %s, which may be outdated; to rebuild it: cede policy build %s",
			filepath.ToSlash(source), filepath.ToSlash(b.Path), filepath.ToSlash(b.Dir)))
	}
}

// BuildError returns the error of a build that failed.
func BuildError(dir string, err error) error {
	if missing, ok := errors.AsType[*toolchain.MissingError](err); ok {
		return &cmdutil.Error{Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: missing.Error(), Hint: missing.Hint(), Err: err}
	}
	if failed, ok := errors.AsType[*toolchain.CompileError](err); ok {
		lines := strings.Split(failed.Output, "\n")
		return &cmdutil.Error{Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: fmt.Sprintf("cannot build %s: %v", dir, failed), Details: lines, Lines: lines, Err: err}
	}
	return WrapError(dir, err)
}
