package gossip

import (
	"regexp"
	"sync"
	"time"
)

// logLimiter lets the same words through once in a while: what is tried every second, or
// told with every exchange, would fill the log with what it says already.
type logLimiter struct {
	mu         sync.Mutex
	lastLogged map[string]time.Time
}

const (
	logInterval = 10 * time.Minute
	maxLogKeys  = 256
)

// sourcePort is the sender's end of a connection, another one each time.
var sourcePort = regexp.MustCompile(`[0-9a-f.:\[\]]+:[0-9]+->`)

// allow is whether to say it now.
func (s *logLimiter) allow(words string) bool {
	words = sourcePort.ReplaceAllString(words, "")
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.lastLogged[words]; known && now.Sub(at) < logInterval {
		return false
	}
	if s.lastLogged == nil || len(s.lastLogged) >= maxLogKeys {
		s.lastLogged = map[string]time.Time{}
	}
	s.lastLogged[words] = now
	return true
}

// reset has everything said again.
func (s *logLimiter) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.lastLogged)
}
