package cmdutil

import (
	"fmt"
	"io"
	"log/slog"
)

// envLogLevel is the variable that says how much of what policies say is shown.
const envLogLevel = "CEDE_LOG_LEVEL"

// guestLog shows what policies say, and what is said about running them, from a
// level on. There is no time in it: what a simulation prints stays the same.
func guestLog(to io.Writer, level string) *slog.Logger {
	least := slog.LevelWarn
	if level != "" {
		if err := least.UnmarshalText([]byte(level)); err != nil {
			_, _ = fmt.Fprintf(to, "warning: %s=%s: expected debug, info, warn or error\n", envLogLevel, level)
		}
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: least, ReplaceAttr: withoutTime}))
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
