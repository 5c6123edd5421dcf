package gossip

import (
	"regexp"
	"sync"
	"time"
)

// seldom lets the same words through once in a while: what is tried every second, or
// told with every exchange, would fill the log with what it says already.
type seldom struct {
	mu   sync.Mutex
	said map[string]time.Time
}

const (
	saidEvery = 10 * time.Minute
	saidKept  = 256
)

// portOut is the sender's end of a connection, another one each time.
var portOut = regexp.MustCompile(`[0-9a-f.:\[\]]+:[0-9]+->`)

// due is whether to say it now.
func (s *seldom) due(words string) bool {
	words = portOut.ReplaceAllString(words, "")
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.said[words]; known && now.Sub(at) < saidEvery {
		return false
	}
	if s.said == nil || len(s.said) >= saidKept {
		s.said = map[string]time.Time{}
	}
	s.said[words] = now
	return true
}

// forget has everything said again.
func (s *seldom) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.said)
}
