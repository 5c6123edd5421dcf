package simrun

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// maxDescription limits the size of a description, in bytes.
const maxDescription = 2 << 20

// ReadDescription reads what scenarios are generated from: a preset, a file, or
// standard input.
func ReadDescription(env *cmdutil.Env, name string) (*generate.Spec, error) {
	for _, p := range generate.Presets() {
		if p.Name == name {
			return generate.Open(name)
		}
	}
	r, err := env.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cmdutil.Usagef("check the path, or use a preset: "+presetNames(), "no file or preset %q", name)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // read-only
	data, err := io.ReadAll(io.LimitReader(r, maxDescription))
	if err != nil {
		return nil, cmdutil.ReadError(name, err)
	}
	if name == cmdutil.Stdin {
		name = cmdutil.StandardInput
	}
	spec, err := generate.Parse(name, data)
	if err != nil {
		return nil, notGenerated(name, err)
	}
	return spec, nil
}

// Generate generates the scenario of a description, and calls progress after every job.
// Errors name the description.
func Generate(name string, spec *generate.Spec, progress func(generate.Progress)) (*scenario.File, *generate.Report, error) {
	f, report, err := generate.GenerateObserved(spec, progress)
	if err != nil {
		return nil, nil, notGenerated(name, err)
	}
	return f, report, nil
}

func presetNames() string {
	var names []string
	for _, p := range generate.Presets() {
		names = append(names, p.Name)
	}
	return cmdutil.JoinOr(names)
}

// notGenerated returns the error for a description that no scenario can be generated
// from.
func notGenerated(name string, err error) error {
	e := &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: fmt.Sprintf("%s: %v", name, err)}
	invalid, ok := errors.AsType[*scenario.Error](err)
	if ok {
		e = cmdutil.InvalidScenario(invalid)
	}
	if ok && isScenario(invalid) {
		e.Hint = "the file is a scenario, not a description: cede sim run plays it, and cede compare --seeds N varies its tie-breaks"
		return e
	}
	e.Hint = "presets are examples of descriptions: " + presetNames() + "; `go doc ./core/sim/generate` lists every field"
	return e
}

// isScenario reports whether a description is invalid because it has fields of a scenario.
func isScenario(invalid *scenario.Error) bool {
	return slices.ContainsFunc(invalid.Problems, func(p scenario.Problem) bool {
		return p.Message == `unknown field "events"` || p.Message == `unknown field "jobs"`
	})
}
