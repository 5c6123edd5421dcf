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

// Files is what commands need of a file system.
type Files interface {
	Open(name string) (fs.File, error)
	// Write makes a file of what write writes, or leaves what was there.
	Write(name string, write func(io.Writer) error) error
	// WritePrivate is Write for what others may not read: a file that it makes is its
	// owner's alone.
	WritePrivate(name string, write func(io.Writer) error) error
	// Writable is why Write could not make a file; it leaves all as it was.
	Writable(name string) error
}

// OS is the machine's file system.
type OS struct{}

var _ Files = OS{}

// Open opens a file for reading.
func (OS) Open(name string) (fs.File, error) { return os.Open(name) }

// Write writes beside the file and renames, so that whoever reads the file
// never sees half of it, and an interrupted command leaves the old one.
// A name that is no regular file, such as /dev/null, is written in place.
func (OS) Write(name string, write func(io.Writer) error) error { return replace(name, 0o666, write) }

// WritePrivate is Write of a file that only its owner reads, also while it is written.
func (OS) WritePrivate(name string, write func(io.Writer) error) error {
	return replace(name, 0o600, write)
}

// replace makes a file, with the mode less the umask; one that exists keeps its own.
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
	beside := f.Name()
	if exists {
		err = f.Chmod(before.Mode().Perm())
	}
	if err = errors.Join(err, fill(f, write)); err == nil {
		err = os.Rename(beside, name)
	}
	if err != nil {
		_ = os.Remove(beside) // the error that counts is the first one
	}
	return err
}

// Writable tries what Write begins with. What is no regular file is left alone:
// to open a pipe is to be heard.
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

// createBeside makes the file that becomes another once it is whole.
func createBeside(name string, mode fs.FileMode) (*os.File, error) {
	beside := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), os.Getpid()))
	return os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
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

// Stdin is the name that stands for standard input, and for standard output
// where a file is written.
const Stdin = "-"

// StandardInput is what messages call it.
const StandardInput = "standard input"

// Open opens a file that the user named; - is standard input.
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

// suggestFile is a file of a folder that may be meant, a scenario before any other;
// empty: there is none, nor a scenario in the folders there.
func (env *Env) suggestFile(name string, folder fs.File) (file string) {
	const scenario = "scenario.yaml"
	f, ok := folder.(fs.ReadDirFile)
	if !ok {
		return ""
	}
	entries, _ := f.ReadDir(-1) // what cannot be listed is not suggested
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

// ReadError is a file that the user named and that cannot be opened.
func ReadError(name string, err error) error {
	e := &Error{Exit: ExitUsage, Code: CodeInvalid, Message: fmt.Sprintf("%s: %v", name, WithoutPath(err)), Hint: "check the path and its permissions", Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		e.Message, e.Hint = name+": no such file", "check the path; - reads standard input"
	}
	return e
}

// WithoutPath is an error without the operation and path that the system adds.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// CheckWritable is the error that write would end with, found before long work.
func (env *Env) CheckWritable(name string) error {
	if name == Stdin {
		return nil
	}
	return WriteError(name, env.Files.Writable(name))
}

// Write writes a file that the user named; - is standard output.
func (env *Env) Write(name string, write func(io.Writer) error) error {
	return env.writeWith(env.Files.Write, name, write)
}

// WritePrivate is write for what others may not read.
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

// WriteModule writes the code of a policy where the user wants it.
func (env *Env) WriteModule(name string, m *client.PolicyModule) error {
	return env.Write(name, func(w io.Writer) error {
		_, err := w.Write(m.Code)
		return err
	})
}
