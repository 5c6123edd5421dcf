package operator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/doctor"
)

func newOperatorDoctorCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "doctor DIR",
		Short:       "Check the data directory of a stopped server",
		Annotations: cmdutil.ExitCodes("1 data is damaged: something that was written is missing or altered"),
		Long: `Check the data directory of a stopped server: every entry of the log, every byte of
snapshots and policy modules, and the history. Each finding states a remedy.

With --replay the newest snapshot and the entries after it are applied to an empty
state. Its hash equals the hash that cede operator raft reports for servers with the
same state, and the state itself is checked.

Nothing in the directory is changed. Files that must be opened for writing are copied to
the temporary folder.`,
		Example: "  cede operator doctor /var/lib/cede\n  cede operator doctor /var/lib/cede --replay\n  cede operator doctor /var/lib/cede -t '{{range .findings}}{{.what}}{{\"\\n\"}}{{end}}'",
		Args:    cmdutil.PositionalArgs(1, 1, "one data directory"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	again, until := false, uint64(0)
	cmd.Flags().BoolVar(&again, "replay", false, "replay the log, and print the hash of the state")
	cmd.Flags().Uint64Var(&until, "until", 0, "replay up to the entry `INDEX` (default: the last)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if until > 0 && !again {
			return cmdutil.Usagef("add --replay", "--until requires --replay")
		}
		dir := serverDir(args[0])
		if err := checkServerDir(dir); err != nil {
			return err
		}
		seen := showPart(env)
		defer seen.progress.Done()
		report, err := doctor.RunObserved(cmd.Context(), dir, seen.observe)
		if err != nil {
			return doctorError(dir, err)
		}
		report.CheckCluster(replication.Newest)
		e := examination{Report: report}
		if again && report.Log != nil && report.Log.Last > 0 && !report.Damaged() {
			if e.Replay, err = replay(cmd.Context(), dir, until, seen.restart("verifying the log").observe); err != nil {
				return cmdutil.InterruptError(cmd.Context(), err)
			}
		}
		seen.progress.Done()
		err = out.Show(cmdutil.Document{Data: e, Names: []string{report.Dir}, Page: e.page})
		if err == nil && e.bad() {
			err = cmdutil.ExitWith(cmdutil.ExitError)
		}
		return err
	}
	return cmd
}

// partProgress shows which part of a directory is examined, and the share that is done.
type partProgress struct {
	env      *cmdutil.Env
	progress *term.Progress

	mu    sync.Mutex
	part  string
	share float64
}

// showPart starts the display of a progress that observe receives.
func showPart(env *cmdutil.Env) *partProgress {
	p := &partProgress{env: env}
	return p.restart("reading the folder")
}

// restart starts a display for the next operation, with a time of its own.
func (p *partProgress) restart(part string) *partProgress {
	if p.progress != nil {
		p.progress.Done()
	}
	p.part, p.share = part, -1
	p.progress = p.env.Progress()
	p.progress.Repeat(p.line)
	return p
}

// observe records and shows the progress.
func (p *partProgress) observe(part string, share float64) {
	p.mu.Lock()
	p.part, p.share = part, share
	p.mu.Unlock()
	p.progress.Show(p.line)
}

func (p *partProgress) line(elapsed time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return term.ProgressLine(p.share, elapsed, p.part, elapsed.Round(time.Second).String())
}

// serverDir returns the server's subdirectory of a data directory. If dir is already
// that subdirectory, it returns dir.
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

// checkServerDir returns an error if a readable directory holds no data of a server. Its hint
// names a directory below or beside it that does.
func checkServerDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || (datadir.Layout{Dir: dir}).Exists() {
		return nil //nolint:nilerr // doctor reports the error with its remedy
	}
	candidates := []string{filepath.Join(filepath.Dir(filepath.Clean(dir)), "server")}
	for _, e := range entries {
		candidates = append(candidates, filepath.Join(dir, e.Name()), filepath.Join(dir, e.Name(), "server"))
	}
	hint := "pass data_dir of the server's configuration"
	for _, candidate := range candidates {
		if (datadir.Layout{Dir: candidate}).Exists() {
			hint = "found one: cede operator doctor " + candidate
			break
		}
	}
	return &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: dir + ": not the data directory of a server", Hint: hint}
}

// doctorError returns the error of a directory that cannot be examined.
func doctorError(dir string, err error) error {
	switch {
	case errors.Is(err, datadir.ErrLocked):
		return &cmdutil.Error{Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: err.Error(), Hint: "stop the server first", Err: err}
	case cmdutil.WithoutPath(err) != err: //nolint:errorlint // compares the identity: err contains a path
		return &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: fmt.Sprintf("%s: %v", dir, cmdutil.WithoutPath(err)), Hint: "check the path and its permissions", Err: err}
	}
	return err
}

// examination holds the findings, for programs and as a page.
type examination struct {
	*doctor.Report
	Replay *replayView `json:"replay,omitempty"`
}

// bad reports whether data is damaged or the state is inconsistent.
func (e examination) bad() bool { return e.Damaged() || e.Replay != nil && e.Replay.Problem != "" }

func (e examination) page(p cmdutil.Page) {
	t := &term.Table{NoHeaders: true, Columns: make([]term.Column, 2)}
	t.Row("directory", e.Dir)
	t.Row("server", e.NodeID)
	t.Row("format", e.format())
	t.Row("log", e.log())
	t.Row("snapshots", e.snapshots())
	t.Row("policy modules", e.blobs())
	t.Row("history", e.history())
	_ = t.Write(p.W, p.Style) // p.w keeps the error
	if e.Replay != nil {
		e.Replay.page(p)
	}
	if len(e.Findings) == 0 && !e.bad() {
		p.Printf("\nNo problems found.\n")
	}
	if len(e.Findings) == 0 {
		return
	}
	p.Title("Findings")
	for i := range e.Findings {
		f := &e.Findings[i]
		if i > 0 {
			p.Printf("\n")
		}
		p.Printf("  %s: %s: %s\n", p.Style.Text(severityLook(f.Severity), f.Severity.String()), f.Part, f.Problem)
		if f.Where != "" {
			p.Printf("    at %s\n", f.Where)
		}
		if f.Remedy != "" {
			p.Printf("    remedy: %s\n", f.Remedy)
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

// format returns the formats that a release must support to open the directory.
func (e examination) format() string {
	text := fmt.Sprintf("%d of the directory", e.Format)
	if e.ClusterVersion > 0 {
		text += fmt.Sprintf(", cluster version %d", e.ClusterVersion)
	}
	return text
}

func (e examination) log() string {
	l := e.Log
	switch {
	case l == nil:
		return ""
	case l.Last == 0:
		return "no entries"
	}
	return fmt.Sprintf("entries %d to %d, term %d, %s checked, %s", l.First, l.Last, l.Term, cmdutil.Thousands(int(l.Checked)), cmdutil.FormatBytes(l.Bytes))
}

func (e examination) snapshots() string {
	var words []string
	for _, s := range e.Snapshots {
		word := fmt.Sprintf("at %d, %s", s.Index, cmdutil.FormatBytes(s.Bytes))
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
	return strconv.Itoa(len(e.Blobs)) + ", " + cmdutil.FormatBytes(bytes)
}

func (e examination) history() string {
	h := e.History
	if h == nil || h.Records == 0 {
		return ""
	}
	text := fmt.Sprintf("%s records, %s, of entries %d to %d", cmdutil.Thousands(int(h.Records)), cmdutil.FormatBytes(h.Bytes), h.First, h.Last)
	if h.Oldest != nil && h.Newest != nil {
		text += fmt.Sprintf(", %s to %s", h.Oldest.UTC().Format(time.RFC3339), h.Newest.UTC().Format(time.RFC3339))
	}
	return text
}
