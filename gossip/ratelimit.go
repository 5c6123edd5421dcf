package gossip

import (
	"regexp"
	"sync"
	"time"
)

// logLimiter admits the same message once per logInterval. Attempts repeat every second and
// exchanges repeat their errors, which would flood the log.
type logLimiter struct {
	mu         sync.Mutex
	lastLogged map[string]time.Time
}

const (
	logInterval = 10 * time.Minute
	maxLogKeys  = 256
)

// sourcePort is the local end of a connection, which differs on each attempt.
var sourcePort = regexp.MustCompile(`[0-9a-f.:\[\]]+:[0-9]+->`)

// allow reports whether to log the message now.
func (s *logLimiter) allow(msg string) bool {
	msg = sourcePort.ReplaceAllString(msg, "")
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.lastLogged[msg]; known && now.Sub(at) < logInterval {
		return false
	}
	if s.lastLogged == nil || len(s.lastLogged) >= maxLogKeys {
		s.lastLogged = map[string]time.Time{}
	}
	s.lastLogged[msg] = now
	return true
}

// reset makes every message admissible again.
func (s *logLimiter) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.lastLogged)
}
