package raftnode

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// NewLogger returns a logger for Raft and its companions that writes to log. Raft's
// message becomes the attribute "event" of a line "raft". Levels are those of log, not
// of hclog, so that one setting governs all lines.
func NewLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: hclog.Off, Output: io.Discard})
	l.RegisterSink(logSink{log})
	return l
}

type logSink struct{ log *slog.Logger }

// Accept implements hclog.SinkAdapter. Keys become snake_case, as in all other lines,
// and formatted values are expanded.
func (s logSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelError
	switch level {
	case hclog.Trace, hclog.Debug, hclog.NoLevel, hclog.Off:
		to = slog.LevelDebug
	case hclog.Info:
		to = slog.LevelInfo
	case hclog.Warn:
		to = slog.LevelWarn
	case hclog.Error:
	}
	if level == hclog.Warn && isEmptyReplay(msg, args) {
		to = slog.LevelDebug
	}
	if !s.log.Enabled(context.Background(), to) {
		return
	}
	attrs := append(make([]any, 0, 1+len(args)), slog.String("event", msg))
	for i := 0; i+1 < len(args); i += 2 {
		key := strings.ReplaceAll(fmt.Sprint(args[i]), "-", "_")
		if key == "error" {
			key = "err"
		}
		value := args[i+1]
		if f, ok := value.(hclog.Format); ok && len(f) > 0 {
			value = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
		attrs = append(attrs, slog.Any(key, value))
	}
	s.log.Log(context.Background(), to, "raft", attrs...)
}

// isEmptyReplay reports whether Raft warns that it skips entries up to index 0. It
// does so on every start without known commits, where there is nothing to skip. At
// any other index the warning is meaningful.
func isEmptyReplay(msg string, args []any) bool {
	if msg != "skipping application of old log" {
		return false
	}
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == "index" {
			return args[i+1] == uint64(0)
		}
	}
	return false
}
