package job

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// maxJobFile is the largest job file that is read, in bytes. jobspec refuses
// smaller ones already; it shall be the one to say so.
const maxJobFile = 2 << 20

// jobFile is how a command reads a job file.
type jobFile struct {
	env  *cmdutil.Env
	vars []string
}

func jobFileFlags(cmd *cobra.Command, env *cmdutil.Env) *jobFile {
	f := &jobFile{env: env}
	cmd.Flags().StringArrayVar(&f.vars, "var", nil, "set a variable of an HCL file by `NAME=VALUE`")
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
	vars, err := cmdutil.ParseAssignments(f.vars)
	if err != nil {
		return nil, err
	}
	src, err := f.env.ReadFile(name, maxJobFile)
	if err != nil {
		return nil, err
	}
	if name == cmdutil.Stdin {
		name = cmdutil.StandardInput
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
