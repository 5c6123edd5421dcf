package guestlog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLog_LimitsRateAndCountsDroppedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&out, nil)), 64)
		l.Add(slog.LevelDebug, "below the level of the log")
		for range burst + 50 {
			l.Add(slog.LevelInfo, "again")
		}
		if n := strings.Count(out.String(), "text=again"); n != burst {
			t.Errorf("%d lines were written, want %d", n, burst)
		}
		time.Sleep(time.Second)
		l.Add(slog.LevelInfo, "later")
		if !strings.Contains(out.String(), "dropped=50") || !strings.Contains(out.String(), "text=later") {
			t.Errorf("after a second:\n%s", out.String()[strings.LastIndex(out.String(), "again"):])
		}
	})
}

func TestClean_ReturnsOnePrintableLine(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                "plain",
		"two\nlines\tand":      "two lines and",
		"\x1b[31mred\x00":      "?[31mred?",
		"\xff\xfe":             "??",
		"0123456789abcdefg":    "0123456789abcde ...",
		"0123456789abcd\u00e9": "0123456789abcd ...", // not cut within a character
	} {
		if got := Clean(text, 15); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
