package app

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// newLogger returns the logger of the process: text on terminals, otherwise JSON.
func newLogger(to io.Writer, terminal bool, format string, level *slog.LevelVar) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "text" || format == "auto" && terminal {
		return slog.New(slog.NewTextHandler(to, o))
	}
	return slog.New(slog.NewJSONHandler(to, o))
}

// parseLevel parses a level that config has validated.
func parseLevel(text string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(text))
	return l
}

// raftLogger returns the logger of Raft. If dev is set, it filters out the warning
// about the election timeout, which is expected in a server without peers.
func raftLogger(log *slog.Logger, dev bool) *slog.Logger {
	if !dev {
		return log
	}
	return slog.New(expectedWarningFilter{log.Handler()})
}

// expectedWarningFilter drops the warning that a single server has no contact with a
// leader.
type expectedWarningFilter struct{ slog.Handler }

// Handle forwards all other records.
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
