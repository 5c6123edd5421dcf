package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"
)

// log returns the configured logger, or one that discards.
func (c *Config) log() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// newLogWriter returns a writer that forwards memberlist's log lines to a logger. It must
// be flushed regularly.
func newLogWriter(to *slog.Logger) *logWriter {
	return &logWriter{to: to, groups: map[string]*logGroup{}}
}

// maxTimestampLen is the length of the timestamp at the start of memberlist's lines.
const maxTimestampLen = len("2006/01/02 15:04:05 ")

// logWriter converts lines such as "[WARN] memberlist: text" to records of that level. Any
// host that reaches the gossip port can cause warnings and errors at the rate of its
// packets, so lines of the same kind within an interval are counted: the first one is
// logged at once, and the others together at the end of the interval.
type logWriter struct {
	to *slog.Logger

	mu sync.Mutex
	// groups holds the kinds of lines in this interval. Invariant: at most maxLogGroups
	// and one for all further kinds.
	groups map[string]*logGroup
	since  time.Time // start of the interval
}

// A logGroup counts the lines of one kind.
type logGroup struct {
	level slog.Level
	last  string
	count int // lines that were not logged
}

const (
	groupInterval = time.Minute
	maxLogGroups  = 16
)

// variable matches the parts of a line that differ between lines of the same kind:
// quoted text, and words with digits, such as addresses.
var variable = regexp.MustCompile(`"[^"]*"|'[^']*'|\S*[0-9]\S*`)

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
	if level < slog.LevelWarn || l.isFirst(level, string(text)) {
		l.to.LogAttrs(context.Background(), level, "memberlist", slog.String("says", string(text)))
	}
	return len(line), nil
}

// isFirst reports whether a line is the first of its kind in the interval, and counts it
// if it is not.
func (l *logWriter) isFirst(level slog.Level, text string) bool {
	kind := variable.ReplaceAllString(text, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[kind]
	if g == nil && len(l.groups) >= maxLogGroups {
		kind = "" // further kinds share a group
		g = l.groups[kind]
	}
	if g == nil {
		l.groups[kind] = &logGroup{level: level}
		return true
	}
	g.level, g.last = max(g.level, level), text
	g.count++
	return false
}

// flush logs the number of lines that were suppressed, at most once per interval.
func (l *logWriter) flush(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) < groupInterval {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(l.groups)) {
		if g := l.groups[kind]; g.count > 0 {
			l.to.LogAttrs(context.Background(), g.level, "memberlist lines suppressed", slog.Int("count", g.count), slog.String("last", g.last),
				slog.String("hint", "if the address is not that of a server, block it from the gossip port"))
		}
	}
	clear(l.groups)
	l.since = now
}
