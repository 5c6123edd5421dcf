package selfwatch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatch_ReportsSchedulingDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		w := &Watch{log: slog.New(slog.NewTextHandler(&logged, nil)), election: 500 * time.Millisecond, storage: func() error { return nil }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		time.Sleep(time.Minute)
		if delay, problem := w.Delay(); delay > time.Millisecond || problem != "" {
			t.Errorf("idle machine: delay %v, %q", delay, problem)
		}
		cancel()
		<-done
		w.record(time.Now(), 249*time.Millisecond)
		if delay, problem := w.Delay(); delay != 249*time.Millisecond || problem != "" || logged.Len() > 0 {
			t.Errorf("short delay: %v, %q\n%s", delay, problem, logged.String())
		}
		for range 3 {
			w.record(time.Now(), 700*time.Millisecond)
		}
		delay, problem := w.Delay()
		if delay != 700*time.Millisecond || !strings.Contains(problem, "700 ms exceeds") || !strings.Contains(problem, "server.raft.election") {
			t.Errorf("long delay: %v, %q", delay, problem)
		}
		if n := strings.Count(logged.String(), "scheduled late"); n != 1 {
			t.Errorf("%d lines, want 1:\n%s", n, logged.String())
		}
		time.Sleep(watchPeriod)
		w.record(time.Now(), 0)
		if _, problem := w.Delay(); problem == "" {
			t.Error("the delay of the previous period is forgotten")
		}
		time.Sleep(watchPeriod)
		w.record(time.Now(), 0)
		if delay, problem := w.Delay(); delay != 0 || problem != "" {
			t.Errorf("an old delay is still reported: %v, %q", delay, problem)
		}
	})
}

// A server without a pool holds no elections that a delay could repeat.
func TestWatch_ReportsNoProblemWithoutElections(t *testing.T) {
	var logged strings.Builder
	w := New(slog.New(slog.NewTextHandler(&logged, nil)), 0, func() error { return nil })
	w.record(time.Now(), time.Minute)
	if delay, problem := w.Delay(); delay != time.Minute || problem != "" || logged.Len() > 0 {
		t.Errorf("%v, %q\n%s", delay, problem, logged.String())
	}
}

func TestWatch_LogsFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		var full error
		w := &Watch{log: slog.New(slog.NewTextHandler(&logged, nil)), election: time.Second, storage: func() error { return full }}
		check := func() {
			time.Sleep(diskInterval)
			w.checkStorage(time.Now())
		}
		check()
		full = errors.New("12 MiB are free under /data")
		check()
		check()
		full = nil
		check()
		text := logged.String()
		if strings.Count(text, "12 MiB are free under /data") != 1 || strings.Count(text, "accepts entries again") != 1 {
			t.Errorf("want one line each:\n%s", text)
		}
	})
}
