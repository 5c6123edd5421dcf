package jobspec

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Options say how a file is read.
type Options struct {
	Vars map[string]string // values of an HCL file's variables
	// SchedulingOnly reads what is scheduled of a job, as Nomad would schedule it,
	// and leaves aside how its tasks run: see File.Aside.
	SchedulingOnly bool
}

// File is a job and where its parts were written.
type File struct {
	Job    *client.Job
	parser *parser
}

// Parse reads a job file: HCL2, YAML or JSON. The name is for messages, and its
// ending says which of them it is; where it says nothing the text does. The
// error is Problems.
func Parse(name string, src []byte) (*client.Job, error) {
	f, err := Load(name, src, Options{})
	if err != nil {
		return nil, err
	}
	return f.Job, nil
}

// Load is Parse for callers that have variables, or want to check the job and
// tell what is wrong with it by its lines.
func Load(name string, src []byte, opts Options) (*File, error) {
	r := newParser(name)
	r.schedulingOnly = opts.SchedulingOnly
	f := &File{parser: r}
	switch {
	case len(src) > maxSize:
		r.add(position{}, fmt.Sprintf("the file is larger than %d MiB", maxSize>>20), "check that this is a job file")
	case !utf8.Valid(src) || bytes.IndexByte(src, 0) >= 0:
		r.add(position{}, "the file is not valid UTF-8", "save it as UTF-8; check that this is a job file")
	default:
		f.Job = r.read(bytes.TrimPrefix(src, []byte("\ufeff")), opts)
	}
	if f.Job != nil && r.schedulingOnly {
		r.stripRuntime(f.Job)
	}
	if len(r.problems) > 0 {
		if f.Job != nil {
			r.addModelProblems(f.Job)
		}
		return nil, r.problems.err()
	}
	return f, nil
}

// addModelProblems adds what is wrong with the meaning of a job whose form has problems
// too, so that all are told at once. What was refused is not judged: its value
// is not what was written.
func (r *parser) addModelProblems(j *client.Job) {
	_, err := ToModel(j)
	problems, _ := err.(Problems) //nolint:errorlint // ToModel returns nothing else
	for _, p := range r.locate(problems) {
		if len(r.problems) < maxProblems {
			r.problems = append(r.problems, p)
		}
	}
}

// Model is ToModel of the job that was read; problems tell their lines.
func (f *File) Model() (*model.Job, error) {
	m, err := ToModel(f.Job)
	if err == nil {
		return m, nil
	}
	problems, ok := err.(Problems) //nolint:errorlint // ToModel returns nothing else
	if !ok {
		return nil, err
	}
	return nil, f.parser.locate(problems).err()
}

// locate says where problems of the job stand in its file, and leaves those out
// that come of something that was refused.
func (r *parser) locate(problems Problems) Problems {
	located := make(Problems, 0, len(problems))
	for _, p := range problems {
		if r.isRejected(p.Path) {
			continue
		}
		w := r.originOf(p.Path)
		p.File, p.Line, p.Column, p.Path = r.file, max(w.at.line, 1), max(w.at.column, 1), ""
		if w.name != "" {
			p.Message = w.name + ": " + p.Message
		}
		located = append(located, p)
	}
	return located
}

// isRejected is whether the value of a path, or one around it, was refused.
func (r *parser) isRejected(path string) bool {
	for {
		if r.rejected[path] {
			return true
		}
		at := strings.LastIndexAny(path, ".[")
		if at < 0 {
			return false
		}
		path = path[:at]
	}
}

// originOf is where a path, or what is around it, was written.
func (r *parser) originOf(path string) origin {
	for exact := true; ; exact = false {
		if w, ok := r.origins[path]; ok {
			if !exact && !strings.HasSuffix(path, "]") {
				w.name = ""
			}
			return w
		}
		at := strings.LastIndexAny(path, ".[")
		if at < 0 {
			return r.origins[""]
		}
		path = path[:at]
	}
}

// Languages are the syntaxes of job files.
const (
	HCL  = "hcl"
	YAML = "yaml"
	JSON = "json"
)

// Language is which syntax a file is in: by its name, else by its text.
func Language(name string, src []byte) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".hcl", ".nomad", ".tf":
		return HCL
	case ".yaml", ".yml":
		return YAML
	case ".json":
		return JSON
	}
	text := bytes.TrimLeft(src, " \t\r\n")
	if len(text) > 0 && text[0] == '{' {
		return JSON
	}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0, line[0] == '#', bytes.HasPrefix(line, []byte("//")), bytes.HasPrefix(line, []byte("---")):
			continue
		case bytes.HasPrefix(line, []byte("job ")), bytes.HasPrefix(line, []byte("variable ")), bytes.HasPrefix(line, []byte("/*")):
			return HCL
		}
		break
	}
	return YAML
}

func (r *parser) read(src []byte, opts Options) *client.Job {
	language := Language(r.file, src)
	if len(opts.Vars) > 0 && language != HCL {
		r.add(position{}, "variables are supported in HCL files only", "remove --var")
		return nil
	}
	switch language {
	case HCL:
		if v := r.readHCL(src, opts.Vars); v != nil {
			return r.hclFile(v)
		}
	case YAML:
		if v := r.readYAML(src); v != nil {
			return r.document(v)
		}
	default:
		if v := r.readJSON(src); v != nil {
			return r.document(v)
		}
	}
	return nil
}

// document reads a YAML or JSON document: a job in the scenario's vocabulary, or
// the API's own JSON, which begins its names with capitals.
func (r *parser) document(v *value) *client.Job {
	if v.kind != kindObject {
		r.add(v.at, "expected a job, found "+v.describe(), "start with `id: NAME`; `cede job init` writes an example")
		return nil
	}
	outer, wrapped := v, false
	for _, f := range v.fields {
		if f.name == "Job" || f.name == "job" {
			v, wrapped = f.value, true
		}
	}
	if wrapped {
		r.unwrap(outer)
	}
	if v.kind != kindObject {
		r.add(v.at, "expected a job, found "+v.describe(), "write its fields")
		return nil
	}
	r.origins[""] = origin{at: v.at}
	if slices.ContainsFunc(v.fields, func(f *field) bool { return f.name != "" && f.name[0] >= 'A' && f.name[0] <= 'Z' }) {
		return r.apiJob(v)
	}
	j := &client.Job{}
	plainJob(r.object("a job", "", v), j)
	return j
}

// unwrap checks what stands beside a wrapped job. Nomad's tools write a few
// fields there that ask for nothing.
func (r *parser) unwrap(outer *value) {
	o := r.object("a job file", "", outer)
	o.fields("Job")
	o.fields("job")
	for _, name := range []string{"EnforceIndex", "JobModifyIndex", "PolicyOverride", "PreserveCounts", "Diff", "EvalPriority", "Submission"} {
		o.fields(name)
	}
	o.done()
}
