package jobspec

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Options configure how a file is read.
type Options struct {
	Vars map[string]string // values of an HCL file's variables
	// SchedulingOnly reads the fields that affect scheduling in Nomad, and ignores
	// how tasks run. File.Ignored lists the ignored fields.
	SchedulingOnly bool
}

// A File is a job and the positions of its parts in the file.
type File struct {
	Job    *client.Job
	parser *parser
}

// Parse reads a job file in HCL2, YAML or JSON. The name is used in messages, and its
// extension selects the syntax; if the extension is unknown, Language detects the
// syntax from the text. It returns Problems if the file is invalid.
func Parse(name string, src []byte) (*client.Job, error) {
	f, err := Load(name, src, Options{})
	if err != nil {
		return nil, err
	}
	return f.Job, nil
}

// Load is Parse with options. It returns a File, whose Model method reports problems
// with their lines.
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

// addModelProblems validates a job whose syntax has problems too, so that all
// problems are reported at once. Rejected values are skipped, because they differ
// from those in the file.
func (r *parser) addModelProblems(j *client.Job) {
	_, err := ToModel(j)
	problems, _ := err.(Problems) //nolint:errorlint // ToModel returns nothing else
	for _, p := range r.locate(problems) {
		if len(r.problems) < maxProblems {
			r.problems = append(r.problems, p)
		}
	}
}

// Model returns ToModel of the job, with the lines of problems.
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

// locate returns the problems with their positions in the file. It omits problems of
// rejected values.
func (r *parser) locate(problems Problems) Problems {
	located := make(Problems, 0, len(problems))
	for _, p := range problems {
		if r.isRejected(p.Path) {
			continue
		}
		w := r.originOf(p.Path)
		p.File, p.Line, p.Column, p.Path = r.file, max(w.at.line, 1), max(w.at.column, 1), ""
		p.Remedy = cmp.Or(r.remedyOf(p.inSyntax), p.Remedy)
		if w.name != "" {
			p.Message = w.name + ": " + p.Message
		}
		located = append(located, p)
	}
	return located
}

// isRejected reports whether the value at path or one that contains it was rejected.
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

// originOf returns the origin of the value at path. If it has none, it returns the
// origin of the closest enclosing value.
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

// The syntaxes of job files.
const (
	HCL  = "hcl"
	YAML = "yaml"
	JSON = "json"
	// apiSyntax is JSON with the names of the API.
	apiSyntax = "api"
)

// Language returns the syntax of a file. It is determined by the extension of the
// name, or by the text if the extension is unknown.
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
	r.syntax = Language(r.file, src)
	if len(opts.Vars) > 0 && r.syntax != HCL {
		r.add(position{}, "variables are supported in HCL files only", "remove --var")
		return nil
	}
	switch r.syntax {
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

// document reads a YAML or JSON document. If a field name starts with a capital, the
// document is the API's JSON; otherwise it uses the vocabulary of scenarios.
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
		if r.syntax == JSON {
			r.syntax = apiSyntax
		}
		return r.apiJob(v)
	}
	j := &client.Job{}
	plainJob(r.object("a job", "", v), j)
	return j
}

// unwrap checks the fields next to a wrapped job. It accepts a few fields that
// Nomad's tools write there and that have no effect.
func (r *parser) unwrap(outer *value) {
	o := r.object("a job file", "", outer)
	o.fields("Job")
	o.fields("job")
	for _, name := range []string{"EnforceIndex", "JobModifyIndex", "PolicyOverride", "PreserveCounts", "Diff", "EvalPriority", "Submission"} {
		o.fields(name)
	}
	o.done()
}
