package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim/importer"
)

// simImport holds the flags of `cede sim import`.
type simImport struct {
	env      *cmdutil.Env
	out      *cmdutil.Output
	to       string
	opts     importer.Options
	bands    []string
	neverRan string
	maxSize  string
	maxBytes int64 // of maxSize
}

func newSimImportCmd(env *cmdutil.Env) *cobra.Command {
	s := &simImport{env: env}
	cmd := &cobra.Command{
		Use:   "import FORMAT SRC -w OUT",
		Short: "Convert a trace or a cluster dump to a scenario",
		Long: `Convert a public trace, or a part of it, or the dump of a cluster to a scenario. FORMAT is
one of

` + formatList() + `

Traces are not downloaded, and clusters are not contacted.`,
		Example: "  kubectl get nodes,pods,pdb,priorityclasses,namespaces -A -o json > dump.json\n  cede sim import kube dump.json -w cluster.yaml\n  cede sim import nomad DUMP -w nomad.yaml\n  cede sim import google traces/google-2011 -w google.yaml\n  cede sim import openb traces/openb-2023 --nodes 14 -w openb.yaml\n  cede sim import slurm sacct.txt -w slurm.yaml",
		Args:    cmdutil.PositionalArgs(2, 2, "a format and the trace's folder or file"),
	}
	for _, f := range importer.Formats() {
		cmd.ValidArgs = append(cmd.ValidArgs, f.Name+"\t"+f.Title)
	}
	s.out = cmdutil.OutputFlags(cmd, env)
	s.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.run(args[0], args[1], s.out.Resolve(), refuseZero(cmd))
	}
	return cmd
}

func formatList() string {
	var b strings.Builder
	for _, f := range importer.Formats() {
		fmt.Fprintf(&b, "  %-8s%s\n", f.Name, f.Title)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (s *simImport) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	writeFlag(cmd, &s.to)
	f.StringVar(&s.opts.Name, "name", "", "`NAME` of the scenario (default: derived from the trace and the options)")
	f.Float64Var(&s.opts.Keep, "keep", 0, "keep a `FRACTION` of the nodes, such as 0.25, and all jobs")
	f.IntVar(&s.opts.Nodes, "nodes", 0, "keep `N` nodes and all jobs")
	f.Float64Var(&s.opts.Compress, "compress", 0, "divide submission times by `N`, but not durations")
	f.Float64Var(&s.opts.Sample, "sample", 0, "keep a `FRACTION` of nodes and of jobs")
	f.IntVar(&s.opts.Limit, "limit", 0, "keep the first `N` jobs")
	f.DurationVar(&s.opts.From, "from", 0, "omit jobs submitted before `TIME`, such as 24h")
	f.DurationVar(&s.opts.Until, "until", 0, "omit jobs submitted at `TIME` or later")
	f.StringArrayVar(&s.bands, "band", nil, "map a priority word of the trace to a priority by `WORD=N`, such as LS=80")
	f.StringVar(&s.neverRan, "never-ran", "", "`keep or drop` jobs that the real cluster never started")
	f.StringVar(&s.opts.List, "list", "", "openb: use pod list `NAME` of the folder, such as gpuspec33")
	f.BoolVar(&s.opts.WholeGPUs, "whole-gpus", false, "openb: GPUs as devices, with shares rounded up to whole devices")
	f.BoolVar(&s.opts.GPUShares, "gpu-shares", false, "openb: each GPU as a device of 1,000 units, with shares of one GPU")
	f.BoolVar(&s.opts.Strict, "strict", false, "kube: fail if an object cannot be read, instead of skipping it")
	f.BoolVar(&s.opts.RawPriority, "raw-priority", false, "google: use ten times the priority of the trace instead of three bands")
	f.StringVar(&s.maxSize, "max-size", "", "refuse compressed files of more than `SIZE` after decompression, such as 20GiB (default 8GiB)")
	cmdutil.CompleteFlag(cmd, "never-ran", []string{"keep", "drop"})
}

// refuseZero returns an error if a flag is explicitly 0, because the importer treats 0 as
// unset.
func refuseZero(cmd *cobra.Command) error {
	var wrong, hints []string
	for _, f := range [][2]string{
		{"keep", "to keep all nodes"},
		{"nodes", "to keep all nodes"},
		{"compress", "to keep the times of the trace"},
		{"sample", "for the whole trace"},
		{"limit", "for all jobs"},
		{"until", "to read to the end"},
	} {
		if flag := cmd.Flags().Lookup(f[0]); flag.Changed && flag.Value.String() == flag.DefValue {
			wrong = append(wrong, "--"+f[0])
			hints = append(hints, fmt.Sprintf("remove --%s %s", f[0], f[1]))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return cmdutil.Usagef(strings.Join(hints, ", "), "%s must be positive, not 0", strings.Join(wrong, " and "))
}

// writeFlag adds the required flag -w to a command.
func writeFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVarP(to, "write", "w", "", "write to `FILE`, as JSON if its name ends in .json, else YAML; - is standard output")
}

// requireWriteFlag returns an error if -w is missing, not writable, or an input.
func requireWriteFlag(env *cmdutil.Env, to string, inputs ...string) error {
	if to == "" {
		return cmdutil.Usagef("add -w FILE, or -w - for standard output", "-w is required")
	}
	return env.CheckOutputs(inputs, cmdutil.OutputFile{Flag: "-w", Name: to})
}

// run imports a trace. problems are those of the command line so far; the error lists all.
func (s *simImport) run(name, src string, problems ...error) error {
	format, err := traceFormat(name)
	problems = append(problems, err, requireWriteFlag(s.env, s.to, src), s.choose())
	var from importer.Source
	if format != nil {
		from, err = openTrace(s.env, name, src)
		problems = append(problems, err)
	} else if _, err := os.Stat(src); err != nil && src != cmdutil.Stdin {
		problems = append(problems, cmdutil.ReadError(src, err))
	}
	if err := cmdutil.JoinProblems("the command line", problems...); err != nil {
		return err
	}
	from.MaxBytes = s.maxBytes
	progress := s.env.Progress()
	from = from.Observe(func(p importer.Progress) {
		progress.Show(func(elapsed time.Duration) string { return importLine(filepath.Base(src), p, elapsed) })
	})
	f, report, err := format.Import(s.opts, from)
	progress.Done()
	if err != nil {
		return notImported(name, src, from, err)
	}
	if err := requireWriteFlag(s.env, s.to, filesOf(src, from)...); err != nil {
		return err // an input that the format finds by itself, such as nodes.txt
	}
	if err := simrun.WriteScenario(s.env, s.to, f); err != nil {
		return err
	}
	if s.to == cmdutil.Stdin {
		_, _ = io.WriteString(s.env.Stderr, report.String()) // standard output has the scenario
		return s.incomplete(src, report)
	}
	return cmp.Or(s.out.Show(cmdutil.Document{
		Data: struct {
			Scenario string `json:"scenario"`
			File     string `json:"file"`
			*importer.Report
		}{f.Name, s.to, report},
		Names: []string{f.Name},
		Page:  func(p cmdutil.Page) { p.Printf("%s: scenario %s\n%s", s.to, f.Name, report) },
	}), s.incomplete(src, report))
}

// importLine returns the progress of an import as one line.
func importLine(name string, p importer.Progress, elapsed time.Duration) string {
	share, read := -1.0, cmdutil.FormatBytes(p.Read)
	if p.Total > 0 {
		share, read = float64(p.Read)/float64(p.Total), read+" of "+cmdutil.FormatBytes(p.Total)
	}
	return term.ProgressLine(share, elapsed, name, read, elapsed.Round(time.Second).String())
}

// incomplete returns the error for a scenario that omits a part of the dump.
func (s *simImport) incomplete(src string, r *importer.Report) error {
	if r.Lost == 0 {
		return nil
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitError, Code: cmdutil.CodeInvalid,
		Message: fmt.Sprintf("%s: %s could not be read and were skipped; %s is incomplete", src, cmdutil.Count(r.Lost, "object", "objects"), s.to),
		Hint:    "the report lists them; --strict fails instead",
	}
}

// isDump reports whether a format can be read from standard input: a dump can be one file.
func isDump(format string) bool { return format == "kube" || format == "nomad" }

// streamFS is a file system with one stream that is already open.
type streamFS struct{ onlyFile }

// Open returns the stream. It can be read only once.
func (f streamFS) Open(string) (fs.File, error) { return f.onlyFile, nil }

// Stat returns an error without opening the stream, because fs.Stat would close it.
func (f streamFS) Stat(string) (fs.FileInfo, error) { return f.onlyFile.Stat() }

// onlyFile is a stream as a file.
type onlyFile struct{ io.ReadCloser }

// Stat returns an error, because a stream has no size.
func (f onlyFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// notImported returns the error for a trace that cannot be converted. It names the file by its
// full path, whereas the importer uses paths relative to its directory, and the format of the
// files if that is another one.
func notImported(format, src string, from importer.Source, err error) error {
	message := fmt.Sprintf("%s: %v", src, err)
	if _, ok := errors.AsType[*importer.FileError](err); ok {
		message = located(folderOf(src, from), err)
	}
	hint := "`cede sim import --help` lists formats and options"
	if other := importer.Recognise(from, format); other != "" && other != format && src != cmdutil.Stdin {
		hint = fmt.Sprintf("it seems to be of the format %s: cede sim import %s %s -w FILE", other, other, src)
	}
	return &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: message, Hint: hint}
}

// folderOf returns the folder of a source.
func folderOf(src string, from importer.Source) string {
	if from.File != "" {
		return filepath.Dir(src)
	}
	return src
}

// filesOf returns the paths of the files that were read. Standard input has none.
func filesOf(src string, from importer.Source) (paths []string) {
	if src == cmdutil.Stdin {
		return nil
	}
	for _, file := range from.Files() {
		paths = append(paths, filepath.Join(folderOf(src, from), filepath.FromSlash(file)))
	}
	return paths
}

// located returns the text of an error in files of a folder, with their full paths.
func located(folder string, err error) string {
	all, several := errors.AsType[importer.FileErrors](err)
	if one, ok := errors.AsType[*importer.FileError](err); ok && !several {
		all = importer.FileErrors{one}
	}
	if len(all) == 0 {
		return err.Error()
	}
	full := make(importer.FileErrors, len(all))
	for i, e := range all {
		full[i] = &importer.FileError{File: filepath.Join(folder, e.File), Line: e.Line, Err: e.Err}
	}
	return full.Error()
}

// traceFormat returns the format with a name.
func traceFormat(name string) (*importer.Format, error) {
	formats := importer.Formats()
	for i := range formats {
		if formats[i].Name == name {
			return &formats[i], nil
		}
	}
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return nil, cmdutil.Usagef("use "+cmdutil.JoinOr(names), "unknown trace format %q", name)
}

// choose converts flags to import options, and returns all problems.
func (s *simImport) choose() error {
	var problems []error
	add := func(hint, format string, args ...any) {
		problems = append(problems, cmdutil.Usagef(hint, format, args...))
	}
	switch s.neverRan {
	case "":
	case "keep":
		s.opts.NeverRan = importer.NeverRanKeep
	case "drop":
		s.opts.NeverRan = importer.NeverRanDrop
	default:
		add("use keep or drop", "invalid --never-ran %q", s.neverRan)
	}
	for _, b := range s.bands {
		word, number, _ := strings.Cut(b, "=")
		priority, err := strconv.ParseInt(number, 10, 32)
		if err != nil || word == "" {
			add("use WORD=PRIORITY, such as LS=80", "invalid --band %q: expected a word of the trace and an integer", b)
			continue
		}
		if s.opts.Bands == nil {
			s.opts.Bands = map[string]int32{}
		}
		s.opts.Bands[word] = int32(priority)
	}
	if s.maxSize != "" {
		size, err := config.ParseSize(s.maxSize)
		if err != nil || size < 1 {
			add("use a size such as 20GiB", "invalid --max-size %q: expected a positive size", s.maxSize)
		}
		s.maxBytes = int64(size)
	}
	if err := s.opts.Validate(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			add("`cede sim import --help` lists the options", "%s", line)
		}
	}
	return cmdutil.JoinProblems("the command line", problems...)
}

// openTrace opens the files of a trace.
func openTrace(env *cmdutil.Env, format, src string) (importer.Source, error) {
	switch {
	case src == cmdutil.Stdin && isDump(format):
		in, err := env.Open(src)
		return importer.Source{FS: streamFS{onlyFile{in}}, File: cmdutil.StandardInput}, err
	case src == cmdutil.Stdin:
		return importer.Source{}, cmdutil.Usagef("use the folder or file", "format %s cannot be read from standard input: it has several files", format)
	}
	from, err := importer.Open(src)
	if err != nil {
		return from, cmdutil.ReadError(src, err)
	}
	return from, nil
}
