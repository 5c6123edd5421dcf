package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// maxJobFile is the largest job file that is read, in bytes. jobspec refuses
// smaller ones already; it shall be the one to say so.
const maxJobFile = 2 << 20

// jobFile is how a command reads a job file.
type jobFile struct {
	env  *Env
	vars []string
}

func jobFileFlags(cmd *cobra.Command, env *Env) *jobFile {
	f := &jobFile{env: env}
	cmd.Flags().StringArrayVar(&f.vars, "var", nil, "give a variable of an HCL file a value, as `NAME=VALUE`")
	return f
}

// readJob is a job file that was read and checked.
type readJob struct {
	name  string
	job   *client.Job // as it was written
	model *model.Job  // with defaults
}

// full is the job with every default but the server's.
func (r *readJob) full() *client.Job {
	full := jobspec.FromModel(r.model)
	if r.job.Priority == nil {
		full.Priority = nil // it is the class's, or the global default's
	}
	if r.job.PreemptionPolicy == "" {
		full.PreemptionPolicy = ""
	}
	return full
}

// read reads a job file and checks it.
func (f *jobFile) read(name, namespace string) (*readJob, error) {
	vars, err := assignments(f.vars)
	if err != nil {
		return nil, err
	}
	src, err := f.env.readAll(name, maxJobFile)
	if err != nil {
		return nil, err
	}
	if name == stdin {
		name = standardInput
	}
	file, err := jobspec.Load(name, src, jobspec.Options{Vars: vars})
	if err != nil {
		return nil, err
	}
	if file.Job.Namespace == "" && namespace != "*" {
		file.Job.Namespace = namespace
	}
	m, err := file.Model()
	if err != nil {
		return nil, err
	}
	return &readJob{name: name, job: file.Job, model: m}, nil
}

// words is how the file was named on the command line, with the variables that it was
// given, so that what is suggested means the same job.
func (f *jobFile) words(name string) string {
	words := []string{shellWord(name)}
	for _, v := range f.vars {
		words = append(words, "--var", shellWord(v))
	}
	return strings.Join(words, " ")
}

// plainWord is what a shell takes as it is written.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// shellWord is a word as a POSIX shell wants it written.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func assignments(list []string) (map[string]string, error) {
	vars := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usagef("write --var NAME=VALUE", "--var %s gives no variable a value", text)
		}
		vars[name] = value
	}
	return vars, nil
}

// invalidJob is a job that does not validate.
func invalidJob(problems jobspec.Problems) *Error {
	file := "the job"
	if len(problems) > 0 && problems[0].File != "" {
		file = problems[0].File
	}
	return &Error{
		Exit: ExitUsage, Code: codeInvalid, Details: problems,
		Message: fmt.Sprintf("%s has %s", file, count(len(problems), "problem", "problems")),
		Hint:    "`cede help jobs` describes job files",
		lines:   strings.Split(problems.Error(), "\n"),
	}
}
