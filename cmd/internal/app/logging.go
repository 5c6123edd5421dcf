package app

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// newLogger makes the process's logger: text for people, JSON for programs.
func newLogger(to io.Writer, terminal bool, format string, level *slog.LevelVar) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "text" || format == "auto" && terminal {
		return slog.New(slog.NewTextHandler(to, o))
	}
	return slog.New(slog.NewJSONHandler(to, o))
}

// parseLevel reads what config has checked.
func parseLevel(text string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(text))
	return l
}

// raftLogger is what Raft logs to. A try begins with an election that nobody else
// could win: Raft's warning of that alarms whoever sees cede for the first time.
func raftLogger(log *slog.Logger, dev bool) *slog.Logger {
	if !dev {
		return log
	}
	return slog.New(expectedWarningFilter{log.Handler()})
}

// expectedWarningFilter leaves out that a server of one has not heard a leader.
type expectedWarningFilter struct{ slog.Handler }

// Handle passes the others on.
func (h expectedWarningFilter) Handle(ctx context.Context, r slog.Record) error {
	expected := false
	r.Attrs(func(a slog.Attr) bool {
		expected = expected || a.Key == "event" && strings.HasPrefix(a.Value.String(), "heartbeat timeout reached")
		return !expected
	})
	if expected {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
