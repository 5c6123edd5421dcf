package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/doctor"
)

func newOperatorDoctorCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor DIR",
		Short: "Examine the data directory of a server that is stopped",
		Long: `Examine the data directory of a server that is stopped: every entry of the log,
every byte of snapshots and policy modules, and the history. Nothing in it is
changed; copies of what must be opened go to the folder for temporary files.

With --replay the newest snapshot and the entries after it are applied to an empty
state. Its hash is that which cede operator raft shows of every server with the
same state, and the state itself is checked.

Exit code 1 means damage: something that was written is gone, or is not what it
was. Each finding says what to do.`,
		Example: "  cede operator doctor /var/lib/cede\n  cede operator doctor /var/lib/cede --replay\n  cede operator doctor /var/lib/cede -t '{{range .findings}}{{.what}}{{\"\\n\"}}{{end}}'",
		Args:    arguments(1, 1, "one data directory"),
	}
	out := outputFlags(cmd, env)
	again, until := false, uint64(0)
	cmd.Flags().BoolVar(&again, "replay", false, "work the state out again, and print its hash")
	cmd.Flags().Uint64Var(&until, "until", 0, "replay up to the entry `INDEX` (default: the last)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		if until > 0 && !again {
			return usagef("add --replay", "--until says how far to replay, and --replay is not there")
		}
		dir := serverDir(args[0])
		report, err := doctor.Run(cmd.Context(), dir)
		if err != nil {
			return doctorError(dir, err)
		}
		e := examination{Report: report}
		if again && report.Log != nil && report.Log.Last > 0 && !report.Damaged() {
			if e.Replay, err = replay(cmd.Context(), dir, until); err != nil {
				return interruptedBy(cmd.Context(), err)
			}
		}
		err = out.show(document{data: e, names: []string{report.Dir}, page: e.page})
		if err == nil && e.bad() {
			err = told(ExitError)
		}
		return err
	}
	return cmd
}

// serverDir is the server's part of a data directory, which people know by its
// parent: the process's, as data_dir names it.
func serverDir(dir string) string {
	if _, err := os.Stat(datadir.Layout{Dir: dir}.Raft()); err == nil {
		return dir
	}
	part := filepath.Join(dir, "server")
	if info, err := os.Stat(part); err == nil && info.IsDir() {
		return part
	}
	return dir
}

// doctorError is that the directory could not be examined.
func doctorError(dir string, err error) error {
	switch {
	case errors.Is(err, datadir.ErrLocked):
		return &Error{Exit: ExitError, Code: codeError, Message: err.Error(), Hint: "stop the server first: a directory in use changes under one's eyes", err: err}
	case cause(err) != err: //nolint:errorlint // whether there is a path to leave out
		return &Error{Exit: ExitUsage, Code: codeInvalid, Message: fmt.Sprintf("%s: %v", dir, cause(err)), Hint: "check the path and its permissions", err: err}
	}
	return err
}

// examination is what was found, for programs and laid out for people.
type examination struct {
	*doctor.Report
	Replay *replayView `json:"replay,omitempty"`
}

// bad is whether something is lost or wrong.
func (e examination) bad() bool { return e.Damaged() || e.Replay != nil && e.Replay.Problem != "" }

func (e examination) page(p page) {
	t := &term.Table{NoHeaders: true, Columns: make([]term.Column, 2)}
	t.Row("directory", e.Dir)
	t.Row("server", e.NodeID)
	t.Row("log", e.log())
	t.Row("snapshots", e.snapshots())
	t.Row("policy modules", e.blobs())
	t.Row("history", e.history())
	_ = t.Write(p.w, p.style) // p.w keeps the error
	if e.Replay != nil {
		e.Replay.page(p)
	}
	if len(e.Findings) == 0 && !e.bad() {
		p.printf("\nNothing is wrong.\n")
	}
	if len(e.Findings) == 0 {
		return
	}
	p.title("Findings")
	for i := range e.Findings {
		f := &e.Findings[i]
		if i > 0 {
			p.printf("\n")
		}
		p.printf("  %s: %s: %s\n", p.style.Text(severityLook(f.Severity), f.Severity.String()), f.Part, f.Problem)
		if f.Where != "" {
			p.printf("    at %s\n", f.Where)
		}
		if f.Remedy != "" {
			p.printf("    remedy: %s\n", f.Remedy)
		}
	}
}

func severityLook(s doctor.Severity) term.Emphasis {
	switch s {
	case doctor.Damage:
		return term.Red
	case doctor.Warning:
		return term.Bold
	}
	return term.Dim
}

func (e examination) log() string {
	l := e.Log
	switch {
	case l == nil:
		return ""
	case l.Last == 0:
		return "no entries"
	}
	return fmt.Sprintf("entries %d to %d, term %d, %s checked, %s", l.First, l.Last, l.Term, thousands(int(l.Checked)), size(l.Bytes))
}

func (e examination) snapshots() string {
	var words []string
	for _, s := range e.Snapshots {
		word := fmt.Sprintf("at %d, %s", s.Index, size(s.Bytes))
		if !s.Usable {
			word = s.ID + ", damaged"
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

func (e examination) blobs() string {
	if len(e.Blobs) == 0 {
		return ""
	}
	bytes := int64(0)
	for _, b := range e.Blobs {
		bytes += b.Bytes
	}
	return strconv.Itoa(len(e.Blobs)) + ", " + size(bytes)
}

func (e examination) history() string {
	h := e.History
	if h == nil || h.Records == 0 {
		return ""
	}
	text := fmt.Sprintf("%s records, %s, of entries %d to %d", thousands(int(h.Records)), size(h.Bytes), h.First, h.Last)
	if h.Oldest != nil && h.Newest != nil {
		text += fmt.Sprintf(", %s to %s", h.Oldest.UTC().Format(time.RFC3339), h.Newest.UTC().Format(time.RFC3339))
	}
	return text
}
