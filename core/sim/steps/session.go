package steps

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/internal/plainjson"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// An Error is a defect of the dialogue: an answer that cannot be used, or none.
type Error struct {
	Decision int // from 1
	Reason   string
}

func (e *Error) Error() string { return fmt.Sprintf("answer %d: %s", e.Decision, e.Reason) }

// A Session is the dialogue of one run.
type Session struct {
	// Full requests all columns, and no omission of options and rows that the policy
	// declares it would not choose.
	Full bool
	// Stop is called once after an Error, to end the run.
	Stop func()

	mu       sync.Mutex
	in       *json.Decoder
	limit    *limitedReader
	out      *json.Encoder
	decision int // number of calls so far
	since    Since
	err      error
}

// Since counts events of allocations since the previous decision.
type Since struct {
	Placed   int `json:"placed"`
	Started  int `json:"started"`
	Finished int `json:"finished"`
	Evicted  int `json:"evicted"`
}

// Start is the first line of a dialogue.
type Start struct {
	Type     string `json:"type"` // start
	Version  int    `json:"version"`
	Scenario string `json:"scenario"`
	Policy   string `json:"policy"`
	Seed     uint64 `json:"seed"`
}

// Decision is a call of a hook, which expects an answer.
type Decision struct {
	Type   string `json:"type"` // decision
	ID     int    `json:"id"`   // from 1
	Policy string `json:"policy"`
	Hook   string `json:"hook"`
	// Answer is that of the policy. It is used if the program answers with {}.
	Answer *Answer `json:"answer"`
	Since  Since   `json:"since"`
	// Columns is the input of the hook, by the names of sdk/policy in lower camel case.
	Columns map[string]any `json:"columns"`

	elements int // rows and options
}

// An answer has at most maxAnswer bytes, and maxValue more for each row and option: a larger one
// would be read for minutes before its first error is found. The values of a row take less than
// 100 bytes without indentation.
const (
	maxAnswer = 1 << 20
	maxValue  = 1 << 10
)

// errTooLong is returned if an answer exceeds its limit.
var errTooLong = errors.New("the answer is too long")

// limitedReader is a reader that fails if more bytes are read than are left.
type limitedReader struct {
	r    io.Reader
	left int
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLong
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// End is the last line of a complete dialogue.
type End struct {
	Type   string      `json:"type"` // end
	Since  Since       `json:"since"`
	Result *sim.Result `json:"result"`
}

// Failure is the last line of a dialogue that failed.
type Failure struct {
	Type    string `json:"type"` // error
	Message string `json:"message"`
}

// New returns a session that writes lines to out and reads answers from in.
func New(in io.Reader, out io.Writer) *Session {
	limit := &limitedReader{r: in}
	s := &Session{in: json.NewDecoder(limit), limit: limit, out: json.NewEncoder(out), Stop: func() {}}
	s.out.SetEscapeHTML(false)
	return s
}

// Begin writes the first line.
func (s *Session) Begin(f *scenario.File, name string) error {
	return s.out.Encode(Start{Type: "start", Version: 1, Scenario: f.Name, Policy: name, Seed: f.Seed})
}

// Wrap returns a copy of a version. The session answers the calls of the copy. The caller
// must hold a reference to v.
func (s *Session) Wrap(v *policy.Version) (*policy.Version, error) {
	return v.Copy(func(v *policy.Version, m policy.Module) policy.Module {
		return &module{Module: m, name: v.Name, session: s}
	})
}

// Event counts an event of the timeline.
func (s *Session) Event(ev timeline.Event) {
	switch ev.Kind {
	case timeline.Placed:
		s.since.Placed++
	case timeline.Started:
		s.since.Started++
	case timeline.Finished:
		s.since.Finished++
	case timeline.Evicted:
		s.since.Evicted++
	}
}

// Finish writes the last line: the result of the run, or the error of the dialogue, which it
// returns.
func (s *Session) Finish(run *sim.Run) error {
	if s.err == nil && run != nil {
		s.err = s.checkRest()
	}
	if s.err != nil {
		return errors.Join(s.err, s.out.Encode(Failure{Type: "error", Message: s.err.Error()}))
	}
	if run == nil {
		return nil
	}
	return s.out.Encode(End{Type: "end", Since: s.since, Result: run.Result})
}

// exchange writes a decision and reads its answer. It returns nil if the answer is that of the
// policy.
func (s *Session) exchange(d Decision, check func(*Answer) []string) (*Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.decision++
	d.Type, d.ID, d.Since = "decision", s.decision, s.since
	s.since = Since{}
	if err := s.out.Encode(d); err != nil {
		return nil, s.fail("the decision cannot be written: " + err.Error())
	}
	var text json.RawMessage
	var a *Answer
	largest := maxAnswer + maxValue*d.elements
	s.limit.left = largest
	err := plainjson.Explain(s.in.Decode(&text))
	switch {
	case err == nil:
		a, err = parseAnswer(text)
	case errors.Is(err, errTooLong):
		err = fmt.Errorf("more than %d bytes: an answer has at most that many for a decision with %d rows and options", largest, d.elements)
	case !errors.Is(err, io.EOF):
		err = fmt.Errorf("invalid JSON: %w", err)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, s.fail("standard input ended before the decision was answered")
	case err != nil:
		return nil, s.fail(err.Error())
	case a.ID != nil && *a.ID != s.decision:
		return nil, s.fail(fmt.Sprintf("id: expected %d, found %d", s.decision, *a.ID))
	case a.isEmpty():
		return nil, nil
	}
	if problems := append(a.foreign(d.Hook), check(a)...); len(problems) > 0 {
		return nil, s.fail(listed(problems))
	}
	return a, nil
}

// maxProblems is the maximum number of problems in one message.
const maxProblems = 20

// listed returns the first problems of an answer as one text.
func listed(problems []string) string {
	text := strings.Join(problems[:min(len(problems), maxProblems)], "; ")
	if more := len(problems) - maxProblems; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// checkRest returns an error if the input that was read beyond the last answer is more than
// empty answers: the program answered a decision that the run does not have. It does not
// wait for further input.
func (s *Session) checkRest() error {
	rest := json.NewDecoder(s.in.Buffered())
	for {
		var text json.RawMessage
		err := rest.Decode(&text)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // nothing, or the beginning of a value
		}
		if a, invalid := parseAnswer(text); err != nil || invalid != nil || !a.isEmpty() || a.ID != nil {
			return &Error{s.decision + 1, "input after the last decision, which is not used"}
		}
	}
}

// fail ends the dialogue. The caller must hold mu.
func (s *Session) fail(reason string) error {
	s.err = &Error{s.decision, reason}
	s.Stop()
	return s.err
}

// module starts instances that a session answers for.
type module struct {
	policy.Module
	name    string
	session *Session
}

// Start creates an instance.
func (m *module) Start(c *sdk.Config) (policy.Instance, error) {
	in, err := m.Module.Start(c)
	if err != nil {
		return nil, err
	}
	return &instance{Instance: in, m: m}, nil
}
