package gossip

import (
	"bytes"
	"context"
	"io"
	"log/slog"
)

func (c *Config) log() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// newLogWriter writes memberlist's lines to a logger.
func newLogWriter(to *slog.Logger) io.Writer { return &logWriter{to} }

// maxTimestampLen is how many bytes the time takes that memberlist begins lines with.
const maxTimestampLen = len("2006/01/02 15:04:05 ")

// logWriter turns "[WARN] memberlist: text" into a record of that level.
type logWriter struct{ to *slog.Logger }

// levels has memberlist's chatter about every exchange one lower than it says.
var levels = []struct {
	prefix string
	level  slog.Level
}{
	{"[DEBUG]", slog.LevelDebug},
	{"[INFO]", slog.LevelDebug},
	{"[WARN]", slog.LevelWarn},
	{"[ERR]", slog.LevelError},
}

// repeatedPrefixes is how lines begin that memberlist repeats with every exchange, of what the roster
// has said once.
var repeatedPrefixes = []string{"ignoring alive message for", "Failed push/pull merge", "Conflicting address for"}

func (l *logWriter) Write(line []byte) (int, error) {
	text, level := bytes.TrimSpace(line), slog.LevelInfo
	if at := bytes.IndexByte(text, '['); at > 0 && at <= maxTimestampLen {
		text = text[at:] // the record has its own time
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
