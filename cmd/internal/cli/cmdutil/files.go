package cmdutil

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cede-scheduler/cede/sdk/client"
)

// Files is the part of a file system that commands use.
type Files interface {
	Open(name string) (fs.File, error)
	// Write creates or replaces a file with the output of write. On an error the file is
	// unchanged.
	Write(name string, write func(io.Writer) error) error
	// WritePrivate is the same as Write, but a new file is readable by its owner only.
	WritePrivate(name string, write func(io.Writer) error) error
	// Remove removes a file. It returns no error if there is none.
	Remove(name string) error
	// Writable returns the error that Write would return; it changes nothing.
	Writable(name string) error
	// MakeDir creates a folder and those above it, unless they exist.
	MakeDir(name string) error
}

// OS is the file system of the host.
type OS struct{}

var _ Files = OS{}

// Open opens a file for reading.
func (OS) Open(name string) (fs.File, error) { return os.Open(name) }

// Write writes a temporary file in the same folder and renames it, so that readers never
// see a partial file and an interrupted command leaves the old one. A name that is not a
// regular file, such as /dev/null, is written in place.
func (OS) Write(name string, write func(io.Writer) error) error { return replace(name, 0o666, write) }

// WritePrivate is Write with mode 0600, also for the temporary file.
func (OS) WritePrivate(name string, write func(io.Writer) error) error {
	return replace(name, 0o600, write)
}

// Remove removes a file if it exists.
func (OS) Remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// replace writes a file with the given mode, subject to the umask; an existing file
// keeps its mode.
func replace(name string, mode fs.FileMode, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	before, err := os.Stat(name)
	exists := err == nil
	if exists && !before.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return fill(f, write)
	}
	f, err := createBeside(name, mode)
	if err != nil {
		return err
	}
	temporary := f.Name()
	if exists {
		err = f.Chmod(before.Mode().Perm())
	}
	if err = errors.Join(err, fill(f, write)); err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		_ = os.Remove(temporary) // the first error is returned
	}
	return err
}

// Writable creates and removes the temporary file of Write. Names that are not regular
// files are not opened: opening a pipe has effects.
func (OS) Writable(name string) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	switch before, err := os.Stat(name); {
	case err == nil && before.IsDir():
		return syscall.EISDIR
	case err == nil && !before.Mode().IsRegular():
		return nil
	}
	f, err := createBeside(name, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// MakeDir creates folders with mode 0777, subject to the umask.
func (OS) MakeDir(name string) error { return os.MkdirAll(name, 0o777) }

// createBeside creates the temporary file in the folder of a file.
func createBeside(name string, mode fs.FileMode) (*os.File, error) {
	temporary := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), os.Getpid()))
	return os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

// fill writes and closes a file.
func fill(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<16)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	return errors.Join(err, f.Close())
}

// Stdin is the file name of standard input, and of standard output for files that are
// written.
const Stdin = "-"

// StandardInput is the name of standard input in messages.
const StandardInput = "standard input"

// Open opens a user's file; - is standard input.
func (env *Env) Open(name string) (io.ReadCloser, error) {
	if name == Stdin {
		if env.stdinUsed {
			return nil, Usagef("write the second input to a file", "standard input (-) can be read only once")
		}
		env.stdinUsed = true
		return io.NopCloser(env.Stdin), nil
	}
	f, err := env.Files.Open(name)
	if err != nil {
		return nil, ReadError(name, err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		e := &Error{Exit: ExitUsage, Code: CodeInvalid, Message: name + " is a folder", Hint: "use a file in it"}
		if file := env.suggestFile(name, f); file != "" {
			e.Hint += ", such as " + filepath.ToSlash(file)
		}
		_ = f.Close() // nothing was written
		return nil, e
	}
	return f, nil
}

// suggestFile returns a file in a folder that the user may have meant, preferably a
// scenario; empty if there is none.
func (env *Env) suggestFile(name string, folder fs.File) (file string) {
	const scenario = "scenario.yaml"
	f, ok := folder.(fs.ReadDirFile)
	if !ok {
		return ""
	}
	entries, _ := f.ReadDir(-1) // a directory that cannot be listed has no completions
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var deeper string
	for _, e := range entries {
		path := filepath.Join(name, e.Name())
		switch {
		case e.Name() == scenario:
			return path
		case e.IsDir() && deeper == "" && env.exists(filepath.Join(path, scenario)):
			deeper = filepath.Join(path, scenario)
		case !e.IsDir() && file == "" && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			file = path
		}
	}
	return cmp.Or(file, deeper)
}

func (env *Env) exists(name string) bool {
	f, err := env.Files.Open(name)
	if err == nil {
		_ = f.Close() // nothing was read
	}
	return err == nil
}

// ReadError returns the error for a user's file that cannot be opened.
func ReadError(name string, err error) error {
	e := &Error{Exit: ExitUsage, Code: CodeInvalid, Message: fmt.Sprintf("%s: %v", name, WithoutPath(err)), Hint: "check the path and its permissions", Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		e.Message, e.Hint = name+": no such file", "check the path; - reads standard input"
	}
	return e
}

// FileMessage returns the text of an error about a file, with the path and without the name
// of the system call.
func FileMessage(err error) string {
	p, ok := errors.AsType[*fs.PathError](err)
	switch {
	case !ok:
		return err.Error()
	case errors.Is(err, fs.ErrNotExist):
		return p.Path + ": no such file"
	}
	return fmt.Sprintf("%s: %v", p.Path, p.Err)
}

// WithoutPath returns an error without the operation and path that the system adds.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// CheckWritable returns the error that Write would return, so that it is found before long
// work.
func (env *Env) CheckWritable(name string) error {
	if name == Stdin {
		return nil
	}
	return WriteError(name, env.Files.Writable(name))
}

// An OutputFile is a file that a command writes and a flag names.
type OutputFile struct{ Flag, Name string }

// CheckOutputs returns every problem of the files that a command writes, so that they are found
// before long work. Each must be writable, and is neither an input of the command nor another
// output. A flag without a name is not set.
func (env *Env) CheckOutputs(inputs []string, outputs ...OutputFile) error {
	var problems []error
	for i, o := range outputs {
		if o.Name != "" && o.Name != Stdin {
			problems = append(problems, env.checkOutput(o, inputs, outputs[:i]))
		}
	}
	return JoinProblems("the command line", problems...)
}

func (env *Env) checkOutput(o OutputFile, inputs []string, others []OutputFile) error {
	for _, input := range inputs {
		if input != "" && env.isSameFile(o.Name, input) {
			return Usagef("use another name; nothing was changed", "%s %s is an input of this command", o.Flag, o.Name)
		}
	}
	for _, other := range others {
		if other.Name == "" { // filepath.Clean returns "." for it, the current folder
			continue
		}
		if filepath.Clean(o.Name) == filepath.Clean(other.Name) || env.isSameFile(o.Name, other.Name) {
			return Usagef("use another name", "%s and %s write the same file %s", other.Flag, o.Flag, o.Name)
		}
	}
	return env.CheckWritable(o.Name)
}

// isSameFile reports whether two names are those of one file, also by way of links.
func (env *Env) isSameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return env.exists(a)
	}
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && x.Mode().IsRegular() && os.SameFile(x, y)
}

// MakeDir creates a folder and those above it. Remove removes the ones that are new and still
// empty.
func (env *Env) MakeDir(name string) (remove func(), err error) {
	var missing []string // the deepest one first
	for dir := filepath.Clean(name); !env.exists(dir); dir = filepath.Dir(dir) {
		missing = append(missing, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	remove = func() {
		for _, dir := range missing {
			_ = env.Files.Remove(dir) // fails if a file was written into it
		}
	}
	return remove, WriteError(name, env.Files.MakeDir(name))
}

// Write writes a user's file; - is standard output.
func (env *Env) Write(name string, write func(io.Writer) error) error {
	return env.writeWith(env.Files.Write, name, write)
}

// WritePrivate is Write for a file that only its owner can read.
func (env *Env) WritePrivate(name string, write func(io.Writer) error) error {
	return env.writeWith(env.Files.WritePrivate, name, write)
}

func (env *Env) writeWith(by func(string, func(io.Writer) error) error, name string, write func(io.Writer) error) error {
	if name == Stdin {
		w := bufio.NewWriter(env.Stdout)
		if err := write(w); err != nil {
			return WriteError("standard output", err)
		}
		return WriteError("standard output", w.Flush())
	}
	return WriteError(name, by(name, write))
}

// WriteModule writes the code of a policy to a file.
func (env *Env) WriteModule(name string, m *client.PolicyModule) error {
	return env.Write(name, func(w io.Writer) error {
		_, err := w.Write(m.Code)
		return err
	})
}
