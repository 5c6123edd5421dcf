package guestlog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A Log receives the output of all guests of one module. It admits a burst and then a fixed
// rate of lines per second, so that a guest cannot fill a disk.
type Log struct {
	maxLine int

	mu      sync.Mutex
	log     *slog.Logger
	tokens  float64 // lines admitted now, a token bucket
	last    time.Time
	dropped int
}

const (
	burst     = 100
	perSecond = 10
)

// New returns a log that writes lines of at most maxLine bytes to l.
func New(l *slog.Logger, cut int) *Log { return &Log{log: l, maxLine: cut, tokens: burst} }

// Rename writes the following lines to another logger, such as one with the name of the
// policy, which is known only after its start.
func (l *Log) Rename(to *slog.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = to
}

func (l *Log) logger() *slog.Logger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log
}

// Enabled reports whether Add writes lines of a level. It saves callers a copy of the text.
func (l *Log) Enabled(level slog.Level) bool {
	return l.logger().Enabled(context.Background(), level)
}

// Add writes or drops a line. The text is an attribute, so a line never looks like a
// message of the host.
func (l *Log) Add(level slog.Level, text string) {
	ctx := context.Background()
	log := l.logger()
	if !log.Enabled(ctx, level) {
		return
	}
	pass, dropped := l.allow(time.Now())
	if dropped > 0 {
		log.WarnContext(ctx, "policy output exceeds the rate limit", "dropped", dropped)
	}
	if pass {
		log.Log(ctx, level, "policy output", "text", Clean(text, l.maxLine))
	}
}

// allow reports whether a line is admitted, and how many lines were dropped before it.
func (l *Log) allow(now time.Time) (pass bool, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() {
		l.tokens = min(burst, l.tokens+perSecond*now.Sub(l.last).Seconds())
	}
	l.last = now
	if l.tokens < 1 {
		l.dropped++
		return false, 0
	}
	l.tokens--
	dropped, l.dropped = l.dropped, 0
	return true, dropped
}
