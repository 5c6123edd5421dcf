package guestlog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Log is what the guests of one module write to. It lets a burst pass and then
// so many lines a second: a guest must not fill a disk.
type Log struct {
	maxLine int

	mu      sync.Mutex
	log     *slog.Logger
	tokens  float64 // lines that may pass now
	last    time.Time
	dropped int
}

const (
	burst     = 100
	perSecond = 10
)

// New returns a log that writes to l lines of at most cut bytes.
func New(l *slog.Logger, cut int) *Log { return &Log{log: l, maxLine: cut, tokens: burst} }

// Rename has the lines that follow go to another logger: one that names the
// policy, which is known only after it was started.
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

// Add writes a line, or drops it. What the guest calls an error is its own
// business: a line never reads as if the host had written it.
func (l *Log) Add(level slog.Level, text string) {
	ctx := context.Background()
	log := l.logger()
	if !log.Enabled(ctx, level) {
		return
	}
	pass, dropped := l.allow(time.Now())
	if dropped > 0 {
		log.WarnContext(ctx, "the policy logs too much", "dropped", dropped)
	}
	if pass {
		log.Log(ctx, level, "the policy says", "text", Clean(text, l.maxLine))
	}
}

// allow is whether a line may pass, and how many before it did not.
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
