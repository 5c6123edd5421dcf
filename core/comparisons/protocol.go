package comparisons

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cede-scheduler/cede/core/confine"
	"github.com/cede-scheduler/cede/core/model"
)

// Arg is the argument with which a program that calls Serve is started to play.
const Arg = "play-comparison"

// An Input is a workload with the policies that play it. Either Text or Preset is set.
type Input struct {
	Name        string // of the scenario in messages
	Text        []byte // of the scenario, or of the description
	Description bool   // Text describes a scenario that is generated
	Preset      string // name of a description that the program contains
	Policies    []Policy
	Seeds       int
	Limits      Limits
}

// A Policy is built in, or a version of the cluster.
type Policy struct {
	Name    string               // in the report; of a built-in policy, P or P?key=value
	Version *model.PolicyVersion // nil: a built-in policy
	Module  []byte               // of the version; nil: a configuration of a built-in policy
}

// Limits bound one comparison. A zero field means the default.
type Limits struct {
	Input     int           // bytes of the text; default: 8 MiB
	Modules   int           // bytes of the modules of all policies; default: 16 MiB
	Policies  int           // default: 6
	Seeds     int           // default: 20
	Nodes     int           // nodes of the scenario, and clusters; default: 20,000
	Instances int           // instances of its jobs, and replicas of its bindings; default: 200,000
	Memory    int64         // data of the process in bytes; default: 1 GiB
	CPU       time.Duration // default: 15m
	Time      time.Duration // default: 30m
	Output    int           // bytes of the report in both forms; default: 32 MiB
	Kept      int           // finished comparisons; default: 10
	KeptBytes int           // of their reports; default: 64 MiB
}

// WithDefaults returns the limits with defaults in the place of zeros.
func (l Limits) WithDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.Input, 8 << 20},
		{&l.Modules, 16 << 20},
		{&l.Policies, 6},
		{&l.Seeds, 20},
		{&l.Nodes, 20_000},
		{&l.Instances, 200_000},
		{&l.Output, 32 << 20},
		{&l.Kept, 10},
		{&l.KeptBytes, 64 << 20},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	if l.Memory <= 0 {
		l.Memory = 1 << 30
	}
	if l.CPU <= 0 {
		l.CPU = 15 * time.Minute
	}
	if l.Time <= 0 {
		l.Time = 30 * time.Minute
	}
	return l
}

// A Progress is the state of a comparison that is played.
type Progress struct {
	Share float64 // from 0 to 1
	Text  string
}

// A Report is the result of a comparison.
type Report struct {
	Document json.RawMessage // as of cede compare -o json
	HTML     []byte          // as of cede compare --html
	Warnings []string
}

// size returns the bytes of memory that a report occupies.
func (r *Report) size() int { return len(r.Document) + len(r.HTML) }

// An Error is the reason for which a comparison has no report.
type Error struct {
	Message string
	Hint    string   `json:",omitempty"`
	Lines   []string `json:",omitempty"` // every problem of the input
}

func (e *Error) Error() string { return e.Message }

// A message is a line of the output of the process.
type message struct {
	Progress *Progress `json:",omitempty"`
	Report   *Report   `json:",omitempty"`
	Error    *Error    `json:",omitempty"`
}

// Serve reads an input, limits this process, plays, and writes progress and the result. It
// is the main function of the process.
func Serve(in io.Reader, out io.Writer, play func(in *Input, progress func(Progress)) (*Report, error)) error {
	head, err := bufio.NewReader(in).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	var input Input
	if err := json.Unmarshal(head, &input); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	l := input.Limits
	// The only files are those of native code, which another process writes under these limits.
	const file = 128 << 20
	if err := confine.Apply(confine.Limits{Memory: l.Memory, CPU: l.CPU, File: file, Nice: 19}); err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	report, err := play(&input, func(p Progress) { _ = enc.Encode(message{Progress: &p}) }) // if the server has ended, so does this process
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Message: err.Error()}
		}
		return enc.Encode(message{Error: e})
	}
	return enc.Encode(message{Report: report})
}
