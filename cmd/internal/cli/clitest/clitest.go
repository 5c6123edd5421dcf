// Package clitest provides an environment in memory for tests of commands. It
// starts no server and touches no disk; tests run commands in it by themselves.
package clitest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/clock"
)

// Contested is a scenario in which job high must evict job low to be placed.
const Contested = `
version: 1
name: contested
nodes: [{id: n1, capacity: {cpu: 1000}}]
jobs:
  - {id: low, priority: 10, groups: [{name: g, resources: {cpu: 800}}]}
  - {id: high, priority: 90, groups: [{name: g, resources: {cpu: 800}}]}
running: [{id: a, job: low, group: g, node: n1, startedAt: -1h}]
events: [{at: 1s, submit: high}]
until: 1m
`

// An Env is a command's environment that a test controls and inspects. It
// implements cmdutil.Files over a map.
type Env struct {
	*cmdutil.Env
	Out, Err  bytes.Buffer
	Files     map[string]string
	Variables map[string]string
}

var _ cmdutil.Files = (*Env)(nil)

// New returns an environment with the given files and command line, the
// built-in policies, a virtual clock at the Unix epoch, and no variables.
func New(files map[string]string, args ...string) *Env {
	if files == nil {
		files = map[string]string{}
	}
	e := &Env{Files: files, Variables: map[string]string{}}
	e.Env = &cmdutil.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &e.Out, Stderr: &e.Err,
		Width: func(io.Writer) int { return 60 }, Getenv: func(k string) string { return e.Variables[k] },
		Files: e, Clock: clock.NewVirtual(time.Unix(0, 0)), Build: app.Build{Version: "v0"}, Cores: 2,
		Memory: func() int64 { return 0 }, Exit: func(int) {}, Policies: BuiltIn(), Environ: func() []string { return nil },
	}
	return e
}

// BuiltIn returns a loader that has the built-in policies only.
func BuiltIn() *policies.Loader { return policies.New(policies.Options{}) }

// Open returns the file of a name, or an error that wraps fs.ErrNotExist.
func (e *Env) Open(name string) (fs.File, error) {
	text, ok := e.Files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memoryFile{Reader: strings.NewReader(text)}, nil
}

// Write stores the output of write under a name. It stores nothing if write fails.
func (e *Env) Write(name string, write func(io.Writer) error) error {
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	e.Files[name] = b.String()
	return nil
}

// WritePrivate is the same as Write.
func (e *Env) WritePrivate(name string, write func(io.Writer) error) error {
	return e.Write(name, write)
}

// Remove removes the file of a name.
func (e *Env) Remove(name string) error {
	delete(e.Files, name)
	return nil
}

// Writable returns nil: every name can be written.
func (*Env) Writable(string) error { return nil }

// MakeDir returns nil: names need no folder.
func (*Env) MakeDir(string) error { return nil }

type memoryFile struct{ *strings.Reader }

func (*memoryFile) Stat() (fs.FileInfo, error) { return nil, errors.New("not implemented") }
func (*memoryFile) Close() error               { return nil }
