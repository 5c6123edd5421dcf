package cmdutil

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/suggest"
	"github.com/cede-scheduler/cede/sdk/client"
)

// An Error is the error of a command, in the shape of API errors.
type Error struct {
	Exit    Exit   `json:"-"`
	Code    string // stable, for programs
	Message string
	Hint    string `json:",omitempty"`
	Details any    `json:",omitempty"`

	Lines    []string `json:"-"` // details, one per line, printed before the message
	Reported bool     `json:"-"` // the error was printed already; only Exit is used
	Err      error    `json:"-"` // the cause
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// Stable error codes.
const (
	CodeError       = "error"
	CodeUsage       = "usage"
	CodeInvalid     = "invalid_file"
	CodeExpectation = "expectation_failed"
	CodePolicy      = "policy_fault"
	CodeCheck       = "check_failed"
	codeInterrupted = "interrupted"
	CodeUnreachable = "unreachable"
	CodeUnplaced    = "unplaced"
)

// Usagef returns the error of an invalid command line.
func Usagef(hint, format string, args ...any) error {
	return &Error{Exit: ExitUsage, Code: CodeUsage, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// JoinProblems returns an error with the problems and hints of several errors about an object,
// such as "the command line", each once. One error alone is returned as it is, and nil if there
// is none.
func JoinProblems(object string, problems ...error) error {
	var errs []error
	for _, err := range problems {
		if err != nil && !slices.ContainsFunc(errs, func(e error) bool { return isSame(e, err) }) {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	if len(errs) == 1 {
		return errs[0]
	}
	joined := &Error{Code: AsError(errs[0]).Code, Err: errors.Join(errs...)}
	var hints, details []string
	for _, err := range errs {
		e := AsError(err)
		joined.Exit = MoreSevere(joined.Exit, e.Exit)
		lines := e.Lines
		switch {
		case len(lines) == 0 && e.Hint != "":
			lines = []string{e.Message + "; " + e.Hint}
		case len(lines) == 0:
			lines = []string{e.Message}
		case e.Hint != "" && !slices.Contains(hints, e.Hint):
			hints = append(hints, e.Hint)
		}
		joined.Lines = append(joined.Lines, lines...)
		if list, ok := e.Details.([]string); ok && len(list) > 0 && len(e.Lines) > 0 { // one problem may take several lines
			lines = list
		}
		details = append(details, lines...)
	}
	joined.Message = fmt.Sprintf("%s has %d problems", object, len(details))
	joined.Hint, joined.Details = strings.Join(hints, "; "), details
	return joined
}

// isSame reports whether two errors print the same. The messages of errors that list problems
// may be equal although their problems differ.
func isSame(a, b error) bool {
	return a.Error() == b.Error() && slices.Equal(AsError(a).Lines, AsError(b).Lines)
}

// ExitWith returns an error that sets the exit code and prints nothing, or nil for ExitOK.
func ExitWith(exit Exit) error {
	if exit == ExitOK {
		return nil
	}
	return &Error{Exit: exit, Reported: true}
}

// AsError returns any error in the form that is printed.
func AsError(err error) *Error {
	var (
		own         *Error
		invalid     *scenario.Error
		unknown     *policies.UnknownError
		jobs        jobspec.Problems
		refusal     *client.Error
		unreachable *client.UnreachableError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.Canceled):
		return &Error{Exit: ExitInterrupted, Code: codeInterrupted, Message: "interrupted"}
	case errors.As(err, &invalid):
		return InvalidScenario(invalid)
	case errors.As(err, &jobs):
		return invalidJob(jobs)
	case errors.As(err, &refusal):
		return ServerError(refusal)
	case errors.As(err, &unreachable):
		return unreachableError(unreachable)
	case errors.As(err, &unknown):
		return &Error{Exit: ExitUsage, Code: CodeUsage, Message: unknown.Error(), Hint: unknown.Hint()}
	}
	return &Error{Exit: ExitError, Code: CodeError, Message: err.Error()}
}

// InvalidScenario returns the error of an invalid scenario file.
func InvalidScenario(err *scenario.Error) *Error {
	type problem struct {
		File string `json:"file,omitempty"`
		scenario.Problem
	}
	details := make([]problem, len(err.Problems))
	for i, p := range err.Problems {
		details[i] = problem{err.File, p}
	}
	count := len(err.Problems) + err.More
	noun := "problems"
	if count == 1 {
		noun = "problem"
	}
	file := err.File
	file = cmp.Or(file, "the scenario")
	hint := conversionHint(err)
	if strings.HasPrefix(hint, kubernetesObjects) { // its fields are not misspelt ones of a scenario
		return &Error{Exit: ExitUsage, Code: CodeInvalid, Details: details, Message: file + " is not a scenario", Hint: hint}
	}
	return &Error{
		Exit: ExitUsage, Code: CodeInvalid, Details: details,
		Message: fmt.Sprintf("%s has %d %s", file, count, noun),
		Hint:    cmp.Or(hint, "`cede help scenario` describes the format"),
		Lines:   strings.Split(err.Error(), "\n"),
	}
}

// kubernetesObjects begins the hint for a file of Kubernetes. The problems of its fields are
// not listed.
const kubernetesObjects = "the file has Kubernetes objects"

// conversionHint returns how to convert a file to a scenario if its fields are those of
// another format; otherwise it returns "".
func conversionHint(err *scenario.Error) string {
	file := err.File
	if file == StandardInput {
		file = Stdin
	}
	for _, p := range err.Problems {
		switch p.Path {
		case "bands", "classes":
			return "the file is a description; to generate a scenario from it: cede sim generate " + file + " -w scenario.yaml"
		case "apiVersion", "items":
			return kubernetesObjects + "; to convert them to a scenario: cede sim import kube " + file + " -w scenario.yaml"
		}
	}
	return ""
}

// Report prints an error on stderr, as text or JSON. It does nothing if err is nil.
func (env *Env) Report(err error) {
	if err == nil {
		return
	}
	e := AsError(err)
	if e.Reported {
		return
	}
	if env.JSONErrors {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(e) // plain values always marshal
		_, _ = env.Stderr.Write(line.Bytes())
		return
	}
	style := term.StyleFor(env.StderrTerminal, env.Getenv)
	for _, l := range e.Lines {
		_, _ = fmt.Fprintln(env.Stderr, l)
	}
	_, _ = fmt.Fprintln(env.Stderr, style.Text(term.Red, "error:"), e.Message)
	if e.Hint != "" {
		_, _ = fmt.Fprintln(env.Stderr, style.Text(term.Bold, "hint:"), e.Hint)
	}
}

// Warn prints a warning on stderr, as text or JSON.
func (env *Env) Warn(text string) {
	if env.JSONErrors {
		line, _ := json.Marshal(struct{ Warning string }{text})
		_, _ = env.Stderr.Write(append(line, '\n'))
		return
	}
	_, _ = fmt.Fprintln(env.Stderr, "warning:", text)
}

// WantsJSON reports whether errors are printed as JSON. It scans the arguments itself,
// because they may be invalid.
func WantsJSON(args []string, getenv func(string) string) bool {
	format := getenv(envFormat)
	for i, a := range args {
		switch {
		case a == "--":
			return format == FormatJSON
		case (a == "-o" || a == "--output") && i+1 < len(args):
			format = args[i+1]
		case strings.HasPrefix(a, "--output="):
			format = strings.TrimPrefix(a, "--output=")
		case strings.HasPrefix(a, "-o") && !strings.HasPrefix(a, "--"):
			format = strings.TrimPrefix(strings.TrimPrefix(a, "-o"), "=")
		}
	}
	return format == FormatJSON
}

// WriteError adds the name of the stream or file to the error of a write.
func WriteError(name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &Error{
		Exit: ExitError, Code: CodeError, Message: fmt.Sprintf("%s: %v", name, WithoutPath(err)),
		Hint: "check the folder, its permissions, and the space left",
	}
}

// JoinOr returns a list such as "a, b or c".
func JoinOr(words []string) string { return suggest.Or(words) }

// invalidJob returns the error of an invalid job file.
func invalidJob(problems jobspec.Problems) *Error {
	file := "the job"
	if len(problems) > 0 && problems[0].File != "" {
		file = problems[0].File
	}
	hint := otherKindHint(file, problems)
	if strings.HasPrefix(hint, kubernetesObjects) {
		return &Error{Exit: ExitUsage, Code: CodeInvalid, Details: problems, Message: file + " is not a job file", Hint: hint}
	}
	return &Error{
		Exit: ExitUsage, Code: CodeInvalid, Details: problems,
		Message: fmt.Sprintf("%s has %s", file, Count(len(problems), "problem", "problems")),
		Hint:    cmp.Or(hint, "`cede help jobs` describes job files"),
		Lines:   strings.Split(problems.Error(), "\n"),
	}
}

// otherKindHint returns the command for a file that is not a job file if its fields are those
// of another kind of file; otherwise it returns "".
func otherKindHint(file string, problems jobspec.Problems) string {
	if file == StandardInput {
		file = Stdin
	}
	for _, p := range problems {
		switch p.Message {
		case `unknown field "events" in a job`, `unknown field "jobs" in a job`:
			return "the file is a scenario; to play it: cede sim run " + file
		case `unknown field "apiVersion" in a job`:
			return kubernetesObjects + "; cede compare --what-if " + file + " shows what a workload would evict"
		case `unknown field "priorityClasses" in a job`:
			return "the file has priority classes; to create them: cede priority-class apply " + file
		case `unknown field "hooks" in a job`, `unknown field "rules" in a job`:
			return "the file is the manifest of a policy; to build it: cede policy build " + filepath.Dir(file)
		}
	}
	return ""
}
