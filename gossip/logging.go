package gossip

import (
	"bytes"
	"context"
	"io"
	"log/slog"
)

// log returns the configured logger, or one that discards.
func (c *Config) log() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// newLogWriter returns a writer that forwards memberlist's log lines to a logger.
func newLogWriter(to *slog.Logger) io.Writer { return &logWriter{to} }

// maxTimestampLen is the length of the timestamp at the start of memberlist's lines.
const maxTimestampLen = len("2006/01/02 15:04:05 ")

// logWriter converts lines such as "[WARN] memberlist: text" to records of that level.
type logWriter struct{ to *slog.Logger }

// levels maps memberlist's levels. Its information about every exchange becomes debug
// output.
var levels = []struct {
	prefix string
	level  slog.Level
}{
	{"[DEBUG]", slog.LevelDebug},
	{"[INFO]", slog.LevelDebug},
	{"[WARN]", slog.LevelWarn},
	{"[ERR]", slog.LevelError},
}

// repeatedPrefixes start lines that memberlist repeats with every exchange. membership has
// already logged them once.
var repeatedPrefixes = []string{"ignoring alive message for", "Failed push/pull merge", "Conflicting address for"}

func (l *logWriter) Write(line []byte) (int, error) {
	text, level := bytes.TrimSpace(line), slog.LevelInfo
	if at := bytes.IndexByte(text, '['); at > 0 && at <= maxTimestampLen {
		text = text[at:] // the record has its own timestamp
	}
	for _, known := range levels {
		if rest, ok := bytes.CutPrefix(text, []byte(known.prefix)); ok {
			text, level = bytes.TrimSpace(rest), known.level
		}
	}
	text = bytes.TrimPrefix(text, []byte("memberlist: "))
	for _, known := range repeatedPrefixes {
		if bytes.HasPrefix(text, []byte(known)) {
			level = slog.LevelDebug
		}
	}
	l.to.LogAttrs(context.Background(), level, "memberlist", slog.String("says", string(text)))
	return len(line), nil
}
