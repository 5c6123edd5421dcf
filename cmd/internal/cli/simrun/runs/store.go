package runs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// version is the version of the file. Another version is refused: the records of version 2
// and earlier have no checksum.
const version = 3

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// every is the minimum interval between two writes of the file.
const every = 5 * time.Second

// A Store keeps finished runs in a file, so that an interrupted command continues where it
// stopped. It is safe for concurrent use.
type Store struct {
	env  *cmdutil.Env
	file string // empty: runs are not stored
	// eager writes the file as runs finish. Otherwise it is written only after an
	// interrupt or an error, so that short commands leave no file behind.
	eager bool

	mu      sync.Mutex
	runs    []Run
	loaded  map[Name]*Run
	unsaved bool
	next    time.Time // of the next write
}

// A Name identifies a run within one command.
type Name struct {
	Scenario string `json:"scenario"`
	Workload uint64 `json:"workload"` // seed of the scenario, by which draws differ
	Policy   string `json:"policy"`   // as written
	Seed     uint64 `json:"seed"`
}

// An Input holds the digests of everything on which a run depends. Runs of equal input have equal results.
type Input struct {
	Scenario string `json:"scenarioDigest"` // of the scenario without its seed
	Policy   string `json:"policyVersion"`  // digest of the module and its configuration
	Settings string `json:"settings"`       // of the command line, and the tie-breaks
	Program  string `json:"program"`
}

// A record is a line of the file. Each has a checksum of its own, so that one damaged record
// costs one run.
type record struct {
	Version  int             `json:"version"` // of the file
	Checksum string          `json:"crc32c"`  // CRC32C of run, in hexadecimal
	Run      json.RawMessage `json:"run"`
}

// checksumOf returns the checksum of an encoded run.
func checksumOf(run []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(run, castagnoli)) }

// A Run is a finished run without the figures that the command computes.
type Run struct {
	Name
	Input
	Metrics   *metrics.Metrics   `json:"metrics"`
	Series    *metrics.Series    `json:"series"`
	Decisions []compare.Decision `json:"decisions,omitempty"`
	Bound     *bound.Report      `json:"bound,omitempty"`
	Shown     string             `json:"shownVersion"` // version of the policy in reports
	Faults    []string           `json:"faults,omitempty"`
	Warnings  []string           `json:"warnings,omitempty"`
}

// NewStore returns an empty store of a file. An empty name stores nothing.
func NewStore(env *cmdutil.Env, file string, eager bool) *Store {
	return &Store{env: env, file: file, eager: eager && file != "", loaded: map[Name]*Run{}}
}

// Open prepares the store. With resume it reads the runs of an interrupted command, otherwise
// it returns an error if there are some, because the first finished run would replace them.
func (s *Store) Open(resume bool) error {
	if s.file == "" {
		return nil
	}
	if !resume {
		return s.refuseExisting()
	}
	r, err := s.env.Open(s.file)
	if err != nil {
		return cmdutil.Usagef("repeat the interrupted command, with the same arguments, or remove --resume to start from the beginning", "cannot resume: %v", err)
	}
	defer func() { _ = r.Close() }() // read-only
	if err := s.read(r); err != nil {
		return err
	}
	if len(s.runs) == 0 {
		return s.refuseFile("it contains no finished run")
	}
	return nil
}

// refuseExisting returns an error if the file contains anything.
func (s *Store) refuseExisting() error {
	f, err := s.env.Files.Open(s.file)
	if err != nil {
		return nil // most commands find no such file
	}
	defer func() { _ = f.Close() }() // read-only
	if n, _ := f.Read(make([]byte, 1)); n == 0 {
		return nil
	}
	return cmdutil.Usagef("add --resume to continue it, or remove the file to start from the beginning", "%s contains the finished runs of an interrupted command", s.file)
}

func (s *Store) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return s.refuseFile(err.Error())
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := s.readRecord(n, line); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// readRecord adds the run of a line. n is the number of the line.
func (s *Store) readRecord(n int, line []byte) error {
	var rec record
	err := json.Unmarshal(line, &rec)
	switch {
	case err != nil:
		return s.refuseRecord(n, err.Error())
	case rec.Version != version:
		return s.refuseFile(fmt.Sprintf("it has version %d, expected %d", rec.Version, version))
	case checksumOf(rec.Run) != rec.Checksum:
		return s.refuseRecord(n, "its checksum does not match")
	}
	run := &Run{}
	if err := json.Unmarshal(rec.Run, run); err != nil {
		return s.refuseRecord(n, err.Error())
	}
	if run.Metrics == nil {
		return s.refuseRecord(n, "it has no metrics")
	}
	if other := s.loaded[run.Name]; other != nil && other.Input == run.Input {
		return nil // a copy: runs of equal input are equal
	}
	s.runs = append(s.runs, *run)
	s.loaded[run.Name] = run
	return nil
}

// refuseRecord returns an error for a line without a valid run. The other runs remain usable
// without that line.
func (s *Store) refuseRecord(n int, reason string) error {
	return cmdutil.Usagef(fmt.Sprintf("remove line %d of the file to play its run again, or remove the file and omit --resume to start from the beginning", n),
		"cannot resume %s: the run in line %d is damaged: %s", s.file, n, reason)
}

// refuseFile returns an error for a file that no command can resume.
func (s *Store) refuseFile(reason string) error {
	return cmdutil.Usagef("remove the file and omit --resume to start from the beginning", "cannot resume %s: %s", s.file, reason)
}

// refuse returns an error for runs of another command.
func (s *Store) refuse(reason string) error {
	return cmdutil.Usagef("add --resume to the interrupted command without other changes, or remove the file and omit --resume to start from the beginning", "cannot resume %s: %s", s.file, reason)
}

// Check returns an error if a stored run is not one that the command plays, or has another
// input. wanted returns the input of a run, or nil.
func (s *Store) Check(wanted func(Name) *Input) error {
	for i := range s.runs {
		run := &s.runs[i]
		input := wanted(run.Name)
		if input == nil {
			return s.refuse(fmt.Sprintf("this command does not play its run of %s under %s with seed %d", run.Name.Scenario, run.Name.Policy, run.Seed))
		}
		if changed := run.changed(input); changed != "" {
			return s.refuse(changed)
		}
	}
	return nil
}

// changed describes how the input of a stored run differs, or returns "".
func (r *Run) changed(now *Input) string {
	switch {
	case r.Input.Scenario != now.Scenario:
		return fmt.Sprintf("scenario %s is not the one that was played", r.Name.Scenario)
	case r.Input.Policy != now.Policy:
		return fmt.Sprintf("policy %s is not the one that was played: %s instead of %s", r.Name.Policy, now.Policy, r.Input.Policy)
	case r.Program != now.Program:
		return fmt.Sprintf("its runs are of cede %s, not of %s", r.Program, now.Program)
	case r.Settings != now.Settings:
		return fmt.Sprintf("%s was played with %s, not with %s", r.Name.Scenario, r.Settings, now.Settings)
	}
	return ""
}

// Find returns the stored result of a run, or nil. It returns an error if the run has another
// input now.
func (s *Store) Find(name Name, input *Input) (*Run, error) {
	run := s.loaded[name]
	if run == nil {
		return nil, nil //nolint:nilnil // most runs are not stored
	}
	if changed := run.changed(input); changed != "" {
		return nil, s.refuse(changed)
	}
	return run, nil
}

// Add stores a finished run.
func (s *Store) Add(run Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, run)
	s.unsaved = true
	if now := s.env.Clock.Now(); s.eager && !now.Before(s.next) {
		s.next = now.Add(every)
		return s.save()
	}
	return nil
}

// save writes all finished runs. The caller must hold mu.
func (s *Store) save() error {
	err := s.env.Write(s.file, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		enc := json.NewEncoder(b)
		for i := range s.runs {
			run, err := json.Marshal(&s.runs[i])
			if err != nil {
				return err
			}
			if err := enc.Encode(record{Version: version, Checksum: checksumOf(run), Run: run}); err != nil {
				return err
			}
		}
		return b.Flush()
	})
	s.unsaved = err != nil
	return err
}

// Interrupted saves the finished runs and reports where they are, or why they are lost.
func (s *Store) Interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" {
		return
	}
	if s.unsaved {
		if err := errors.Join(s.merge(), s.save()); err != nil {
			s.env.Report(err)
			return
		}
	}
	if len(s.runs) > 0 {
		s.env.Warn(fmt.Sprintf("%s kept in %s; to continue, repeat the command with --resume", cmdutil.Count(len(s.runs), "finished run is", "finished runs are"), s.file))
	}
}

// merge adds the runs that the same command, started meanwhile, has saved in the file. A store
// that has written or read the file holds all of its runs. The caller must hold mu.
func (s *Store) merge() error {
	if !s.next.IsZero() || len(s.loaded) > 0 {
		return nil
	}
	f, err := s.env.Files.Open(s.file)
	if err != nil {
		return nil // usually the file does not exist
	}
	defer func() { _ = f.Close() }() // read-only
	own := s.runs
	s.runs = nil
	if err := s.read(f); err != nil {
		s.runs = own
		return fmt.Errorf("%s is replaced: %w", s.file, err)
	}
	for i := range own {
		delete(s.loaded, own[i].Name)
	}
	others := slices.DeleteFunc(s.runs, func(r Run) bool { return s.loaded[r.Name] == nil })
	s.runs = slices.Concat(own, others)
	return nil
}

// Remove removes the file after the command is complete. A file of other runs, which this
// command did not read or write, remains.
func (s *Store) Remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next.IsZero() && len(s.loaded) == 0 {
		return nil
	}
	return s.env.Files.Remove(s.file)
}
