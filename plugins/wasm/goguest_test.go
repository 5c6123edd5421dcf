package wasm_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/wasm"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// crashing loads the guest of testdata/crash, compiled once for all tests.
func crashing(t *testing.T, o wasm.Options) *wasm.Module {
	t.Helper()
	o.CacheDir = cacheDir()
	return load(t, host(t, o), crashGuest(t), policy.Limits{Fuel: 20_000_000, Memory: 16 << 20})
}

// score calls ScoreVictims with two rows and returns the first tier.
func score(in policy.Instance, now int64) (int64, error) {
	out := sdk.VictimScores{Tier: make([]int64, 2), Score: make([]float64, 2)}
	q := hosttest.UniformCandidates(1, 2)
	q.Now = now
	err := in.ScoreVictims(q, &out)
	return out.Tier[0], err
}

func TestGoGuest_ReportsCauseOfFault(t *testing.T) {
	m := crashing(t, wasm.Options{})
	at := func(text string) string {
		return " at main.(*crash).ScoreVictims, " + placeOf(t, "testdata/crash/main.go", text) + " (trap: "
	}
	for _, c := range []struct {
		mode  string
		fault policy.Fault
		says  string
	}{
		{"panic", policy.FaultGuest, "panic: my own words" + at("my own words")},
		{"nil", policy.FaultGuest, "panic: runtime error: invalid memory address or nil pointer dereference [signal 0xb code=0x0 addr=0x0 pc=0x0]" + at("= in.Now")},
		{"index", policy.FaultGuest, "panic: runtime error: index out of range [2] with length 2" + at("out.Tier[in.Rows.Len()]")},
		{"map", policy.FaultGuest, "panic: assignment to entry in nil map" + at("c.seen[")},
		{"conversion", policy.FaultGuest, "panic: interface conversion: interface {} is string, not int64" + at("any(c.mode)")},
		{"memory", policy.FaultLimit, "out of memory"},
		{"deadlock", policy.FaultGuest, "fatal error: all goroutines are asleep - deadlock!"},
		{"recursion", policy.FaultLimit, ""}, // of the guest's stack, fuel or memory
		{"spin", policy.FaultLimit, "used up its 20060000 ticks of fuel"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			in := start(t, m, `{"mode":"`+c.mode+`"}`)
			_, err := score(in, 1)
			fault := new(policy.Error)
			if !errors.As(err, &fault) || fault.Fault != c.fault || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %s of %s", err, c.fault, c.says)
			}
			if strings.Contains(err.Error(), "goroutine 1") || len(err.Error()) > 800 {
				t.Errorf("error contains too much: %v", err)
			}
			if in.Alive() {
				t.Error("instance counts as alive")
			}
			if _, err := score(in, 1); err == nil {
				t.Error("dead instance returned an answer")
			}
		})
	}
}

func TestGoGuest_ErrorKeepsInstance(t *testing.T) {
	in := start(t, crashing(t, wasm.Options{}), `{"mode":"error"}`)
	for range 2 {
		if _, err := score(in, 1); err == nil || err.Error() != "I cannot decide ?[2J" || errors.As(err, new(*policy.Error)) {
			t.Errorf("got %v", err)
		}
	}
	if !in.Alive() {
		t.Error("instance is discarded")
	}
}

func TestGoGuest_RejectsConfiguration(t *testing.T) {
	m := crashing(t, wasm.Options{})
	if v := m.Version(); v != "0.1 ?[2J" || m.Name() != "crash" {
		t.Errorf("%s has version %q", m.Name(), v)
	}
	for config, want := range map[string]string{
		`{"mode":"objects"}`:                "policy p: configuration: I do not like this mode",
		`{"mode":1}`:                        "policy p: configuration: mode: invalid value 1: must be a text",
		`{"mode":"panics when configured"}`: "Configure: panic: configured wrongly",
	} {
		_, err := policy.NewVersion(policy.Source{Name: "p", Module: m, Config: []byte(config)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if n, _ := wasm.Live(m); n != 0 {
		t.Errorf("%d instances remain", n)
	}
}

// The collector of a Go guest works although the clock is constant, and uses the same ticks
// each time.
func TestGoGuest_CollectsItsGarbage(t *testing.T) {
	m := load(t, host(t, wasm.Options{CacheDir: cacheDir()}), crashGuest(t), policy.Limits{Memory: 16 << 20})
	fuel := func() (sum uint64) {
		in := start(t, m, `{"mode":"garbage"}`)
		for range soak.Count(30, 1000) {
			if _, err := score(in, 1_700_000_000_000_000_000); err != nil {
				t.Fatal(err)
			}
			sum += in.Fuel()
		}
		return sum
	}
	if a, b := fuel(), fuel(); a != b {
		t.Errorf("%d ticks and then %d", a, b)
	}
}

func TestGoGuest_IsDeterministic(t *testing.T) {
	answers := map[string][]int64{}
	for _, e := range engines {
		m := crashing(t, e.options)
		for _, mode := range []string{"clock", "chance", "goroutines"} {
			for range 2 {
				in := start(t, m, `{"mode":"`+mode+`"}`)
				for _, now := range []int64{5000, 7000, 6000} {
					tier, err := score(in, now)
					if err != nil {
						t.Fatalf("%s: %v", mode, err)
					}
					answers[mode] = append(answers[mode], tier)
				}
			}
		}
	}
	for mode, got := range answers {
		for i := 3; i < len(got); i += 3 {
			if diff := cmp.Diff(got[:3], got[i:i+3]); diff != "" {
				t.Errorf("%s: instances differ: %v", mode, got)
			}
		}
	}
	if diff := cmp.Diff([]int64{5000, 7000, 6000}, answers["clock"][:3]); diff != "" {
		t.Errorf("time differs from that of the frame:\n%s", diff)
	}
}

// A guest that sleeps does not delay the host: the sleep ends at once, or the fuel does.
func TestGoGuest_CannotSleep(t *testing.T) {
	in := start(t, crashing(t, wasm.Options{}), `{"mode":"sleep"}`)
	_, err := score(in, 1)
	if err == nil {
		t.Error("slept an hour")
	}
	t.Log(err)
}

func TestGoGuest_WritesToLog(t *testing.T) {
	for _, c := range []struct {
		mode string
		want []string
	}{
		{"prints", []string{`level=INFO msg="policy output" policy=crash text="to standard error"`}},
		{"logs", []string{`level=WARN msg="policy output" policy=crash text="to the log ?[2J"`}},
		{"floods", []string{`level=INFO msg="policy output" policy=crash text=again`}},
	} {
		var b bytes.Buffer
		log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		m := crashing(t, wasm.Options{Log: log})
		in := start(t, m, `{"mode":"`+c.mode+`"}`)
		if _, err := score(in, 1); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if lines[0] != c.want[0] || len(lines) > 150 || c.mode == "floods" && len(lines) < 50 {
			t.Errorf("%s: %d lines, first is %s", c.mode, len(lines), lines[0])
		}
	}
}
