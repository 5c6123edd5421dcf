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

// maxJobFile limits the size of a job file, in bytes. It is above the limit of jobspec,
// which reports the error.
const maxJobFile = 2 << 20

// jobFile reads job files with the variables of --var.
type jobFile struct {
	env  *cmdutil.Env
	vars []string
}

func jobFileFlags(cmd *cobra.Command, env *cmdutil.Env) *jobFile {
	f := &jobFile{env: env}
	cmd.Flags().StringArrayVar(&f.vars, "var", nil, "set a variable of an HCL file by `NAME=VALUE`")
	return f
}

// readJob is a job file that was read and validated.
type readJob struct {
	name  string
	job   *client.Job // as written
	model *model.Job  // with defaults
}

// full returns the job with all defaults except those of the server.
func (r *readJob) full() *client.Job {
	full := jobspec.FromModel(r.model)
	if r.job.Priority == nil {
		full.Priority = nil // set by the class or the default
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

// words returns the arguments that name the file and its variables, quoted for a shell, so
// that suggested commands refer to the same job.
func (f *jobFile) words(name string) string {
	words := []string{shellWord(name)}
	for _, v := range f.vars {
		words = append(words, "--var", shellWord(v))
	}
	return strings.Join(words, " ")
}

// plainWord matches words that need no quoting in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// shellWord quotes a word for a POSIX shell if required.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
