package steps_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/steps"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func read(t *testing.T, file string) *scenario.File {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := scenario.Decode(file, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func resolve(spec sim.PolicySpec) (*policy.Version, error) {
	return policy.NewVersion(policy.Source{
		Name: spec.Name, Module: policy.Native(policy.BuiltinDigest("default", "test"), func() sdk.Policy { return rules.New() }),
	})
}

// decision is a line as a program receives it.
type decision struct {
	Type    string          `json:"type"`
	ID      int             `json:"id"`
	Hook    string          `json:"hook"`
	Answer  json.RawMessage `json:"answer"`
	Columns struct {
		FirstRow []int `json:"firstRow"`
		Rows     struct {
			Priority []int `json:"priority"`
		} `json:"rows"`
		Node []int `json:"node"`
	} `json:"columns"`
	Result  json.RawMessage `json:"result"`
	Message string          `json:"message"`
}

// play plays a file as a dialogue. It returns the last line, and the number of decisions.
func play(t *testing.T, f *scenario.File, full bool, answer func(*decision) string) (last decision, decisions int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fromRun, lines := io.Pipe()
	answers, toRun := io.Pipe()
	program := make(chan error, 1)
	go func() {
		in := bufio.NewReader(fromRun)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				program <- nil
				return
			}
			last = decision{}
			if err := json.Unmarshal(line, &last); err != nil {
				program <- err
				_ = fromRun.CloseWithError(err)
				return
			}
			if last.Type != "decision" {
				continue
			}
			decisions++
			text := answer(&last)
			if text == "" {
				_ = toRun.Close()
				continue
			}
			_, _ = io.WriteString(toRun, text+"\n") // fails after the end of the run
		}
	}()
	s := steps.New(answers, lines)
	s.Full, s.Stop = full, cancel
	if err := s.Begin(f, "default"); err != nil {
		t.Fatal(err)
	}
	run, err := sim.Play(ctx, f, sim.Options{Workers: 1, Timeline: s.Event, Resolve: func(spec sim.PolicySpec) (*policy.Version, error) {
		v, err := resolve(spec)
		if err != nil {
			return nil, err
		}
		return s.Wrap(v)
	}})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	_ = answers.Close() // ends the write of an answer that was not read to its end
	_ = s.Finish(run)   // the last line holds the error
	_ = lines.Close()
	if err := <-program; err != nil {
		t.Fatal(err)
	}
	return last, decisions
}

// files have evictions.
var files = []string{
	"../../../examples/budgets/scenario.yaml", "../../../examples/gang/scenario.yaml", "../../../examples/bindings/scenario.yaml",
	"../../../examples/lost-work/scenario.yaml", "../../../examples/moves/scenario.yaml", "../../../examples/taints/scenario.yaml",
}

func TestSession_AnswersOfThePolicyLeadToItsResult(t *testing.T) {
	asked := 0
	for _, file := range files {
		f := read(t, file)
		run, err := sim.Play(t.Context(), f, sim.Options{Resolve: resolve})
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(run.Result)
		if err != nil {
			t.Fatal(err)
		}
		for name, answer := range map[string]func(*decision) string{
			"nothing": func(*decision) string { return "{}" },
			"echo":    func(d *decision) string { return string(d.Answer) },
		} {
			last, decisions := play(t, f, false, answer)
			if !bytes.Equal(last.Result, want) {
				t.Errorf("%s, %s: %s\nwant %s", filepath.Dir(file), name, last.Result, want)
			}
			asked += decisions
		}
	}
	if asked < 20 {
		t.Errorf("%d decisions in all: the scenarios lost their evictions", asked)
	}
}

func TestSession_FullListsLeadToTheSameDecisions(t *testing.T) {
	for _, file := range files {
		f := read(t, file)
		own, _ := play(t, f, false, func(*decision) string { return "{}" })
		full, _ := play(t, f, true, func(*decision) string { return "{}" })
		if a, b := evicted(t, own.Result), evicted(t, full.Result); a != b {
			t.Errorf("%s: evicted %s, with full lists %s", file, a, b)
		}
	}
}

func evicted(t *testing.T, result []byte) string {
	t.Helper()
	var r struct{ Evicted, Placements, Bindings json.RawMessage }
	if err := json.Unmarshal(result, &r); err != nil {
		t.Fatal(err)
	}
	return string(r.Evicted) + string(r.Placements) + string(r.Bindings)
}

func TestSession_OtherAnswersAreUsed(t *testing.T) {
	f := read(t, files[0])
	rows := func(d *decision, value string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(value+",", len(d.Columns.Rows.Priority)), ",") + "]"
	}
	last, _ := play(t, f, true, func(d *decision) string {
		if d.Hook == "ScoreOptions" {
			return "{}"
		}
		return `{"eligible": ` + rows(d, "false") + `}`
	})
	if !bytes.Contains(last.Result, []byte(`"evicted":[]`)) {
		t.Errorf("ineligible candidates were evicted: %s", last.Result)
	}
	last, _ = play(t, f, true, func(d *decision) string {
		if d.Hook == "ScoreOptions" {
			return `{"option": 0}`
		}
		return `{"score": ` + rows(d, "1") + `}`
	})
	if bytes.Contains(last.Result, []byte(`"evicted":[]`)) {
		t.Errorf("nothing was evicted: %s", last.Result)
	}
}

// Any finite score is an answer, and a number of the result.
func TestSession_LargeScoresAreInTheResult(t *testing.T) {
	f := read(t, files[3])
	for answer, want := range map[string]string{
		`{"score": [1e308, -1e308]}`: `"score":1e+308`, `{"score": [-1e308, -1e300]}`: `"score":-1e+300`, `{"score": [0.1234567896, 0]}`: `"score":0.12345679`,
	} {
		last, _ := play(t, f, true, func(d *decision) string {
			if d.Hook == "ScoreOptions" {
				return answer
			}
			return "{}"
		})
		if last.Type != "end" || !strings.Contains(string(last.Result), want) {
			t.Errorf("%s: %s %s, want %s", answer, last.Type, last.Result, want)
		}
	}
}

// A long list of problems ends after the first ones.
func TestSession_LimitsTheProblemsOfAnAnswer(t *testing.T) {
	f := read(t, files[3])
	last, _ := play(t, f, true, func(*decision) string { return `{"picks": [[` + strings.Repeat("99,", 1000) + `99], []]}` })
	if last.Type != "error" || !strings.HasSuffix(last.Message, "; and 981 more") || len(last.Message) > 2000 {
		t.Errorf("%s %q", last.Type, last.Message)
	}
}

// An answer that is too large for its decision ends the run before it is read to its end.
func TestSession_LimitsTheSizeOfAnAnswer(t *testing.T) {
	f := read(t, files[3])
	for name, text := range map[string]string{"list": `{"score": [` + strings.Repeat("1,", 1<<20), "text": `{"` + strings.Repeat("a", 1<<21), "space": strings.Repeat(" ", 1<<21)} {
		last, _ := play(t, f, true, func(*decision) string { return text })
		if last.Type != "error" || !strings.HasPrefix(last.Message, "answer 1: more than 1055744 bytes: ") {
			t.Errorf("%s: %s %q", name, last.Type, last.Message)
		}
	}
	last, _ := play(t, f, true, func(*decision) string { return strings.Repeat(" ", 1<<20) + "{}" })
	if last.Type != "end" {
		t.Errorf("%s %q", last.Type, last.Message)
	}
}

func TestSession_DefectsEndTheRun(t *testing.T) {
	f := read(t, files[0])
	for _, test := range []struct{ name, answer, want string }{
		{"end", "", "standard input ended before the decision was answered"},
		{"syntax", "score", "invalid JSON: invalid character 's'"},
		{"unknown field", `{"victims": []}`, `unknown field "victims"`},
		{"kind", `{"picks": 1}`, "invalid JSON: picks: expected a list, found number"},
		{"list", "[]", "invalid JSON: expected an object, found a list"},
		{"fraction", `{"score": [1e999]}`, "score: expected a finite number, found number 1e999"},
		{"id", `{"id": 9}`, "id: expected 1, found 9"},
		{"id of none", `{"id": 0}`, "id: expected 1, found 0"},
		{"null", "null", "expected an object, found null; {} is the answer of the policy"},
		{"number", "-1", "invalid JSON: expected an object, found number"},
		{"nulls", `{"picks": null, "eligible": [null], "score": [null]}`, "eligible[0]: expected a value, found null; picks: expected a value, found null"},
		{"null list", `{"picks": [null]}`, "picks[0]: expected a value, found null"},
		{"negative time", `{"recheckAt": -1}`, "recheckAt: expected 0 or more nanoseconds, found -1"},
		{"other hook", `{"option": 1}`, "option: not a field of SelectVictims: expected picks, score, tier, eligible, recheckAt"},
		{"length", `{"score": [1], "tier": [1]}`, "tier: expected"},
		{"tier alone", `{"tier": []}`, "tier: requires score"},
		{"picks", `{"picks": []}`, "picks: expected"},
	} {
		last, decisions := play(t, f, true, func(*decision) string { return test.answer })
		if last.Type != "error" || !strings.HasPrefix(last.Message, "answer 1: ") || !strings.Contains(last.Message, test.want) {
			t.Errorf("%s: %s %q, want %q", test.name, last.Type, last.Message, test.want)
		}
		if decisions != 1 {
			t.Errorf("%s: %d decisions after a defect", test.name, decisions)
		}
	}
}
