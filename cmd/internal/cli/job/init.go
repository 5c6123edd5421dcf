package job

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

//go:embed jobs
var jobTemplates embed.FS // read-only

func newJobInitCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write an example job file",
		Long: `Write an example job file: a small service that any node can run. The format follows
the name of FILE, which ends in .hcl, .yaml or .json; the default is job.hcl.

An existing file is not overwritten.`,
		Example: "  cede job init\n  cede job init web.yaml\n  cede job init - > web.hcl",
		Args:    cmdutil.PositionalArgs(0, 1, "one file"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		name := "job.hcl"
		if len(args) > 0 {
			name = args[0]
		}
		text, err := jobTemplate(name)
		if err != nil {
			return err
		}
		if err := refuseExisting(env, name); err != nil {
			return err
		}
		err = env.Write(name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		if err != nil || name == cmdutil.Stdin {
			return err
		}
		return out.Show(cmdutil.Document{
			Data:  struct{ File string }{name},
			Names: []string{name},
			Page: func(p cmdutil.Page) {
				p.Printf("%s: example job written. Next:\n  cede job plan %s\n  cede job run %s\n", name, name, name)
			},
		})
	}
	return cmd
}

// jobTemplate returns the example in the format that the extension of name selects.
func jobTemplate(name string) (string, error) {
	form := strings.ToLower(filepath.Ext(name))
	switch form {
	case ".yml":
		form = ".yaml"
	case ".nomad":
		form = ".hcl"
	case "":
		if name != cmdutil.Stdin {
			return "", cmdutil.Usagef("use "+name+".hcl, "+name+".yaml or "+name+".json", "missing file extension of %q", name)
		}
		form = ".hcl"
	case ".hcl", ".yaml", ".json":
	default:
		return "", cmdutil.Usagef("use .hcl, .yaml or .json", "%s: unsupported file extension %s", name, form)
	}
	text, err := jobTemplates.ReadFile("jobs/example" + form)
	return string(text), err
}

// refuseExisting returns an error if a file exists, so that it is not overwritten.
func refuseExisting(env *cmdutil.Env, name string) error {
	if name == cmdutil.Stdin {
		return nil
	}
	f, err := env.Files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_ = f.Close() // the file was only opened
	}
	return cmdutil.Usagef("use another name", "%s", fmt.Sprintf("%s already exists", name))
}
