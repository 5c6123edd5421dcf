package process

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/confine"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
)

// maxOutputText is the maximum number of bytes of a guest's output in an error.
const maxOutputText = 512

// output receives the output of one process. It forwards it to the log and retains the
// lines that best explain a crash.
type output struct {
	log *guestlog.Log

	mu        sync.Mutex
	lastLine  string // last non-empty line
	panicLine string // first line of a panic or a fatal runtime error
}

// handleStderr handles a line of standard error, with hclog's level or without a level.
func (s *output) handleStderr(line string) {
	if level, text, ok := parseHclog(line); ok {
		s.record(text, false)
		s.log.Add(level, text)
		return
	}
	s.handlePlain(line)
}

// handlePlain handles a line without a level.
func (s *output) handlePlain(line string) {
	if line = strings.TrimRight(line, "\r "); line == "" {
		return
	}
	s.record(line, startsPanic(line))
	s.log.Add(slog.LevelDebug, line)
}

// startsPanic reports whether a line starts a panic or fatal error of the Go runtime. Pages
// of stack traces follow it.
func startsPanic(line string) bool {
	return slices.ContainsFunc([]string{"panic: ", "fatal error: ", "fatal: ", "runtime: ", "runtime/cgo: ", confine.RuntimeCrash},
		func(begin string) bool { return strings.HasPrefix(line, begin) })
}

func (s *output) record(text string, cause bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastLine = text
	if cause && s.panicLine == "" {
		s.panicLine = text
	}
}

// summary returns the text for an error.
func (s *output) summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.panicLine
	text = cmp.Or(text, s.lastLine)
	return guestlog.Clean(text, maxOutputText)
}

// parseHclog parses a line of hclog. Malformed lines count as plain text: the types of a
// guest's output cannot be trusted.
func parseHclog(line string) (level slog.Level, text string, ok bool) {
	if !strings.HasPrefix(line, "{") {
		return 0, "", false
	}
	var entry map[string]any
	if json.Unmarshal([]byte(line), &entry) != nil {
		return 0, "", false
	}
	text, ok = entry["@message"].(string)
	if !ok {
		return 0, "", false
	}
	name, _ := entry["@level"].(string)
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if !strings.HasPrefix(key, "@") {
			text += fmt.Sprintf(" %s=%v", key, entry[key])
		}
	}
	return levelOf(name), text, true
}

func levelOf(name string) slog.Level {
	switch name {
	case "info":
		return slog.LevelInfo
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelDebug
}
