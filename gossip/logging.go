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

// bridge writes memberlist's lines to a logger.
func bridge(to *slog.Logger) io.Writer { return &lines{to} }

// longestTime is how many bytes the time takes that memberlist begins lines with.
const longestTime = len("2006/01/02 15:04:05 ")

// lines turns "[WARN] memberlist: text" into a record of that level.
type lines struct{ to *slog.Logger }

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

// said is how lines begin that memberlist repeats with every exchange, of what the roster
// has said once.
var said = []string{"ignoring alive message for", "Failed push/pull merge", "Conflicting address for"}

func (l *lines) Write(line []byte) (int, error) {
	text, level := bytes.TrimSpace(line), slog.LevelInfo
	if at := bytes.IndexByte(text, '['); at > 0 && at <= longestTime {
		text = text[at:] // the record has its own time
	}
	for _, known := range levels {
		if rest, ok := bytes.CutPrefix(text, []byte(known.prefix)); ok {
			text, level = bytes.TrimSpace(rest), known.level
		}
	}
	text = bytes.TrimPrefix(text, []byte("memberlist: "))
	for _, known := range said {
		if bytes.HasPrefix(text, []byte(known)) {
			level = slog.LevelDebug
		}
	}
	l.to.LogAttrs(context.Background(), level, "memberlist", slog.String("says", string(text)))
	return len(line), nil
}
