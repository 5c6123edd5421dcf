package app

import (
	"io"
	"log/slog"
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
