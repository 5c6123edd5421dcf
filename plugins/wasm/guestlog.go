package wasm

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/sdk/abi"
)

// guestLog is what the instances of one module write to. It lets a burst pass
// and then so many lines a second: a guest must not fill a disk.
type guestLog struct {
	log *slog.Logger

	mu      sync.Mutex
	policy  string
	room    float64 // lines that may pass now
	last    time.Time
	dropped int
}

const (
	burstLines     = 100
	linesPerSecond = 10
)

func newGuestLog(l *slog.Logger) *guestLog { return &guestLog{log: l, room: burstLines} }

// rename says what the module is called from now on.
func (l *guestLog) rename(policy string) {
	l.mu.Lock()
	l.policy = policy
	l.mu.Unlock()
}

// add writes a line, or drops it. What the guest calls an error is its own
// business: a line never reads as if the host had written it.
func (l *guestLog) add(level int32, text []byte) {
	at := slog.LevelError
	switch level {
	case abi.LevelDebug:
		at = slog.LevelDebug
	case abi.LevelInfo:
		at = slog.LevelInfo
	case abi.LevelWarn:
		at = slog.LevelWarn
	}
	ctx := context.Background()
	if !l.log.Enabled(ctx, at) {
		return
	}
	pass, dropped, policy := l.admit(time.Now())
	if dropped > 0 {
		l.log.WarnContext(ctx, "the policy logs too much", "policy", policy, "dropped", dropped)
	}
	if pass {
		l.log.Log(ctx, at, "the policy says", "policy", policy, "text", clean(string(text), abi.MaxLog))
	}
}

// admit is whether a line may pass, and how many before it did not.
func (l *guestLog) admit(now time.Time) (pass bool, dropped int, policy string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() {
		l.room = min(burstLines, l.room+linesPerSecond*now.Sub(l.last).Seconds())
	}
	l.last = now
	if l.room < 1 {
		l.dropped++
		return false, 0, ""
	}
	l.room--
	dropped, l.dropped = l.dropped, 0
	return true, dropped, l.policy
}
