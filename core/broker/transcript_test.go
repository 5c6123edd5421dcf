package broker_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
)

// TestTranscripts plays the stories in testdata. Rewrite them with -rewrite and
// read the difference.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := &story{
			fixture: newFixture(t), tokens: map[string]broker.Token{}, old: map[string]broker.Token{},
			evals: map[string]*model.Evaluation{},
		}
		datadriven.RunTest(t, path, s.run)
	})
}

type story struct {
	*fixture
	known  []string // evaluation ids, as they came
	evals  map[string]*model.Evaluation
	tokens map[string]broker.Token // of the newest delivery
	old    map[string]broker.Token // of the one before
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	switch d.Cmd {
	case "enqueue":
		for line := range strings.Lines(d.Input) {
			s.Enqueue(s.parse(t, line))
		}
	case "dequeue":
		s.dequeue(&out, list(arg(d, "types")))
	case "ack", "nack", "renew", "pause-timer", "resume-timer":
		for _, id := range positional(d) {
			s.settle(&out, d, id)
		}
	case "advance":
		s.advance(duration(t, positional(d)[0]))
	case "reap":
		n, _ := strconv.Atoi(arg(d, "max"))
		fmt.Fprintf(&out, "cancel %s\n", cancelled(s.PopCancelable(n)))
		fmt.Fprintf(&out, "fail %s\n", ids(s.PopFailed(n)))
		fmt.Fprintf(&out, "duplicates %s\n", cancelled(s.blocked.PopDuplicates(n)))
	case "block":
		for line := range strings.Lines(d.Input) {
			ev := s.parse(t, line)
			ev.Status = model.EvalBlocked
			fmt.Fprintf(&out, "%s: %v\n", ev.ID, s.blocked.Block(ev, screenOf(d)))
		}
	case "unblock":
		fmt.Fprintf(&out, "released %s\n", ids(s.blocked.Unblock(number(arg(d, "class")), arg(d, "node"), number(arg(d, "index")), screenOf(d))))
	case "unblock-all":
		fmt.Fprintf(&out, "released %s\n", ids(s.blocked.UnblockAll(number(arg(d, "index")))))
	case "untrack":
		fmt.Fprintf(&out, "untracked %s\n", ids(s.blocked.Untrack(model.JobKey{Namespace: "default", ID: positional(d)[0]})))
	case "pause":
		s.Pause()
	case "resume":
		s.Resume()
	case "disable":
		s.Disable()
	case "enable":
		s.Enable()
	case "show":
		s.show(&out)
	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}
	return out.String()
}

func (s *story) dequeue(out *strings.Builder, names []string) {
	var types []model.JobType
	for _, name := range names {
		typ, err := model.ParseJobType(name)
		if err != nil {
			fmt.Fprintln(out, err)
		}
		types = append(types, typ)
	}
	d, ok := s.TryDequeue(types)
	if !ok {
		fmt.Fprintln(out, "nothing")
		return
	}
	s.old[d.Eval.ID], s.tokens[d.Eval.ID] = s.tokens[d.Eval.ID], d.Token
	fmt.Fprintf(out, "%s priority=%d wait-index=%d attempt=%d\n", d.Eval.ID, d.Eval.Priority, d.WaitIndex, d.Attempt)
}

func (s *story) settle(out *strings.Builder, d *datadriven.TestData, id string) {
	token := s.tokens[id]
	if arg(d, "token") == "old" {
		token = s.old[id]
	}
	switch d.Cmd {
	case "ack":
		result(out, s.Ack(id, token, number(arg(d, "snapshot"))))
	case "nack":
		result(out, s.Nack(id, token))
	case "renew":
		result(out, s.Renew(id, token))
	case "pause-timer":
		result(out, s.PauseTimer(id, token))
	case "resume-timer":
		result(out, s.ResumeTimer(id, token))
	}
}

func (s *story) show(out *strings.Builder) {
	for _, id := range s.known {
		w := s.Locate(id)
		fmt.Fprintf(out, "%s %v", id, w.State)
		if !w.Until.IsZero() {
			fmt.Fprintf(out, " until=%v", w.Until.Sub(epoch))
		}
		if w.Attempt > 0 {
			fmt.Fprintf(out, " attempts=%d", w.Attempt)
		}
		if w.PendingBehind != "" {
			fmt.Fprintf(out, " behind=%s", w.PendingBehind)
		}
		if w.CoveredBy != "" {
			fmt.Fprintf(out, " by=%s", w.CoveredBy)
		}
		fmt.Fprintln(out)
	}
}

// parse parses "id key=value...". Missing values are retained from an earlier line
// about the same evaluation.
func (s *story) parse(t *testing.T, line string) *model.Evaluation {
	fields := strings.Fields(line)
	ev := eval(fields[0], 50, 1)
	if known := s.evals[ev.ID]; known != nil {
		ev = with(known, func(*model.Evaluation) {})
	} else {
		s.known = append(s.known, ev.ID)
	}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "job":
			ev.JobID = value
		case "type":
			typ, err := model.ParseJobType(value)
			must(t, err)
			ev.Type = typ
		case "priority":
			n, _ := strconv.Atoi(value)
			ev.Priority = int32(n)
		case "index":
			if s.evals[ev.ID] == nil {
				ev.CreateIndex = number(value)
			}
			ev.ModifyIndex = number(value)
		case "at":
			ev.WaitUntil = epoch.Add(duration(t, value)).UnixNano()
		case "cancelled":
			ev.Status = model.EvalCancelled
		case "snapshot":
			ev.SnapshotIndex = number(value)
		case "nodes":
			ev.BlockedNodes = list(value)
		case "escaped":
			ev.Escaped = true
		case "classes":
			ev.Classes = map[uint64]bool{}
			for _, c := range list(value) {
				no := strings.HasPrefix(c, "!")
				ev.Classes[number(strings.TrimPrefix(c, "!"))] = !no
			}
		default:
			t.Fatalf("unknown key %q", key)
		}
	}
	s.evals[ev.ID] = ev
	return ev
}

type only []string

func (o only) MayPlace(ev *model.Evaluation, _ string, _ *any) bool { return slices.Contains(o, ev.ID) }

func (only) Excludes(*model.Evaluation, string, *any) bool { return false }

// screenOf lets through only=a,b when it is given, else everybody.
func screenOf(d *datadriven.TestData) broker.UnblockFilter {
	if !d.HasArg("only") {
		return nil
	}
	return only(list(arg(d, "only")))
}

func result(out *strings.Builder, err error) {
	if err != nil {
		fmt.Fprintln(out, "error:", err)
		return
	}
	fmt.Fprintln(out, "ok")
}

func arg(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return strings.Join(a.Vals, ",")
		}
	}
	return ""
}

func positional(d *datadriven.TestData) []string {
	var out []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			out = append(out, a.Key)
		}
	}
	return out
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func number(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	must(t, err)
	return d
}
