package cmdutil

import (
	"fmt"
	"io"
	"log/slog"
)

// envLogLevel is the variable that sets the level of the log of policies.
const envLogLevel = "CEDE_LOG_LEVEL"

// guestLog returns a logger for messages of policies and of their runtime, from a
// level on. It omits the time, so that the output of a simulation is reproducible.
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
