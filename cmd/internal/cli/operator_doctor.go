package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/storage"
)

func newOperatorDoctorCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor DIR",
		Short: "Examine the data directory of a server that is stopped",
		Long: `Examine the data directory of a server that is stopped: every entry of the log,
every byte of snapshots and policy modules, and the history. Nothing in it is
changed; copies of what must be opened go to the folder for temporary files.

Exit code 1 means damage: something that was written is gone, or is not what it
was. Each finding says what to do.`,
		Example: "  cede operator doctor /var/lib/cede\n  cede operator doctor /var/lib/cede -t '{{range .findings}}{{.what}}{{\"\\n\"}}{{end}}'",
		Args:    arguments(1, 1, "one data directory"),
	}
	out := outputFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		report, err := storage.Doctor(cmd.Context(), args[0])
		if err != nil {
			return doctorError(args[0], err)
		}
		err = out.show(document{data: report, names: []string{report.Dir}, page: func(p page) { examination{report}.page(p) }})
		if err == nil && report.Damaged() {
			err = told(ExitError)
		}
		return err
	}
	return cmd
}

// doctorError is that the directory could not be examined.
func doctorError(dir string, err error) error {
	switch {
	case errors.Is(err, storage.ErrLocked):
		return &Error{Exit: ExitError, Code: codeError, Message: err.Error(), Hint: "stop the server first: a directory in use changes under one's eyes", err: err}
	case cause(err) != err: //nolint:errorlint // whether there is a path to leave out
		return &Error{Exit: ExitUsage, Code: codeInvalid, Message: fmt.Sprintf("%s: %v", dir, cause(err)), Hint: "check the path and its permissions", err: err}
	}
	return err
}

// examination is laid out for people.
type examination struct{ *storage.Report }

func (e examination) page(p page) {
	t := &term.Table{NoHeaders: true, Columns: make([]term.Column, 2)}
	t.Row("directory", e.Dir)
	t.Row("server", e.NodeID)
	t.Row("log", e.log())
	t.Row("snapshots", e.snapshots())
	t.Row("policy modules", e.blobs())
	t.Row("history", e.history())
	_ = t.Write(p.w, p.style) // p.w keeps the error
	if len(e.Findings) == 0 {
		p.printf("\nNothing is wrong.\n")
		return
	}
	p.title("Findings")
	for i := range e.Findings {
		f := &e.Findings[i]
		if i > 0 {
			p.printf("\n")
		}
		p.printf("  %s: %s: %s\n", p.style.Text(severityLook(f.Severity), f.Severity.String()), f.Part, f.What)
		if f.Where != "" {
			p.printf("    at %s\n", f.Where)
		}
		if f.Remedy != "" {
			p.printf("    remedy: %s\n", f.Remedy)
		}
	}
}

func severityLook(s storage.Severity) term.Emphasis {
	switch s {
	case storage.Damage:
		return term.Red
	case storage.Warning:
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
