package comparisons

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain also runs the test binary as the process of a comparison.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		if err := Serve(os.Stdin, os.Stdout, fakePlay); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var held [][]byte

// fakePlay behaves as the name of the input selects.
func fakePlay(in *Input, progress func(Progress)) (*Report, error) {
	switch in.Name {
	case "hang":
		progress(Progress{Share: 0.25, Text: "a quarter"})
		time.Sleep(time.Hour)
	case "hog":
		for {
			held = append(held, make([]byte, 8<<20))
			clear(held[len(held)-1]) // occupies memory
			held[len(held)-1][0] = 1
		}
	case "large":
		return &Report{Document: json.RawMessage("0"), HTML: []byte(strings.Repeat("<", in.Limits.Output+1))}, nil
	case "invalid":
		return nil, &Error{Message: "two problems", Hint: "correct them", Lines: []string{"one", "two"}}
	case "crash":
		os.Exit(3)
	case "priority":
		p, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
		return &Report{Document: json.RawMessage(fmt.Sprint(20 - p)), HTML: []byte("<p>")}, err
	}
	return &Report{Document: json.RawMessage(`"` + in.Name + `"`), HTML: in.Text, Warnings: []string{"a warning"}}, nil
}

func newTestQueue(t *testing.T, l Limits) *Queue {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	q := NewQueue(Config{Command: []string{self}, Limits: l})
	t.Cleanup(q.Stop)
	return q
}

func submit(t *testing.T, q *Queue, name string) Comparison {
	t.Helper()
	release, err := q.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	return q.Submit(&Input{Name: name, Text: []byte("text of " + name), Policies: []Policy{{Name: "default"}, {Name: "nomad"}}, Seeds: 2}, "alice")
}

// await returns the comparison when its state has one of the values.
func await(t *testing.T, q *Queue, id string, holds func(Comparison) bool) Comparison {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for c := (Comparison{}); ; {
		var err error
		if c, err = q.Get(ctx, id, c.Version); err != nil || ctx.Err() != nil {
			t.Fatalf("%+v, %v, %v", c, err, ctx.Err())
		}
		if holds(c) {
			return c
		}
	}
}

func ended(c Comparison) bool { return c.Ended != 0 }

func TestQueue_PlaysOneAndLetsOneWait(t *testing.T) {
	q := newTestQueue(t, Limits{})
	first := submit(t, q, "hang")
	await(t, q, first.ID, func(c Comparison) bool { return c.Status == Running && c.Share == 0.25 && c.Text == "a quarter" })
	second := submit(t, q, "ok")
	if _, err := q.Reserve(); !errors.Is(err, ErrFull) {
		t.Errorf("a third comparison: %v", err)
	}
	if c, err := q.Get(t.Context(), second.ID, 0); err != nil || c.Status != Waiting {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := q.Report(first.ID); !errors.Is(err, ErrNoReport) {
		t.Errorf("report of a running comparison: %v", err)
	}
	if err := q.Cancel(first.ID); err != nil {
		t.Fatal(err)
	}
	if c := await(t, q, first.ID, ended); c.Status != Cancelled || c.Error != nil {
		t.Errorf("%+v", c)
	}
	c := await(t, q, second.ID, ended)
	report, err := q.Report(second.ID)
	if err != nil || c.Status != Complete || c.Actor != "alice" || len(c.Warnings) != 1 || string(report.HTML) != "text of ok" || string(report.Document) != `"ok"` {
		t.Errorf("%+v, %+v, %v", c, report, err)
	}
	if list := q.List(); len(list) != 2 || list[0].ID != second.ID {
		t.Errorf("%+v", list)
	}
	if err := q.Cancel(second.ID); err != nil || len(q.List()) != 1 {
		t.Errorf("%v, %d comparisons", err, len(q.List()))
	}
	if err := q.Cancel(second.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("cancelled twice: %v", err)
	}
}

func TestQueue_ReservesOnePlace(t *testing.T) {
	q := newTestQueue(t, Limits{})
	release, err := q.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Reserve(); !errors.Is(err, ErrFull) {
		t.Errorf("a second reservation: %v", err)
	}
	release()
	if release, err = q.Reserve(); err != nil {
		t.Fatal(err)
	}
	release()
}

func TestQueue_CancelsOneThatWaits(t *testing.T) {
	q := newTestQueue(t, Limits{})
	first := submit(t, q, "hang")
	await(t, q, first.ID, func(c Comparison) bool { return c.Status == Running })
	second := submit(t, q, "ok")
	if err := q.Cancel(second.ID); err != nil {
		t.Fatal(err)
	}
	if c := await(t, q, second.ID, ended); c.Status != Cancelled {
		t.Errorf("%+v", c)
	}
	q.Stop()
	if c := await(t, q, first.ID, ended); c.Status != Cancelled {
		t.Errorf("%+v", c)
	}
	if _, err := q.Reserve(); !errors.Is(err, ErrFull) {
		t.Errorf("a stopped queue: %v", err)
	}
}

// No input costs the server more than its limits.
func TestQueue_LimitsTheProcess(t *testing.T) {
	small := Limits{Memory: 256 << 20, Time: time.Minute, Output: 1 << 20}
	for name, test := range map[string]struct {
		limits Limits
		want   string
	}{
		"hog":     {small, "requires more than 256 MiB of memory"},
		"large":   {small, "the report is larger than 1 MiB"},
		"hang":    {Limits{Time: 300 * time.Millisecond}, "takes more than 300ms"},
		"crash":   {small, "the process failed: exit status 3"},
		"invalid": {small, "two problems"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newTestQueue(t, test.limits)
			c := await(t, q, submit(t, q, name).ID, ended)
			if c.Status != Failed || c.Error == nil || !strings.Contains(c.Error.Message, test.want) {
				t.Errorf("%+v, %+v", c, c.Error)
			}
			if name == "invalid" && (c.Error.Hint != "correct them" || len(c.Error.Lines) != 2) {
				t.Errorf("%+v", c.Error)
			}
		})
	}
}

func TestQueue_PlaysWithTheLowestPriority(t *testing.T) {
	q := newTestQueue(t, Limits{})
	c := await(t, q, submit(t, q, "priority").ID, ended)
	if report, err := q.Report(c.ID); err != nil || string(report.Document) != "19" {
		t.Errorf("%+v, %v, %v", c, report, err)
	}
}

func TestQueue_ForgetsTheOldestReports(t *testing.T) {
	for name, test := range map[string]struct {
		limits Limits
		want   int
	}{
		"by number": {Limits{Kept: 2}, 2},
		"by size":   {Limits{KeptBytes: 20}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := newTestQueue(t, test.limits)
			var last string
			for range 4 {
				last = submit(t, q, "ok").ID
				await(t, q, last, ended)
			}
			if list := q.List(); len(list) != test.want || list[0].ID != last {
				t.Errorf("%d comparisons are kept, want %d: %+v", len(list), test.want, list)
			}
		})
	}
}
