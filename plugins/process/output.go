package process

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
)

// maxOutputText is how much of a guest's own words an error carries, in bytes.
const maxOutputText = 512

// output takes what one process prints: it goes to the log, and the words that
// tell best why the process died are kept.
type output struct {
	log *guestlog.Log

	mu        sync.Mutex
	lastLine  string // the last line that says something
	panicLine string // the first line of a panic or of a fatal error of the runtime
}

// handleStderr takes a line of standard error: of hclog with its level, or plain.
func (s *output) handleStderr(line string) {
	if level, text, ok := parseHclog(line); ok {
		s.record(text, false)
		s.log.Add(level, text)
		return
	}
	s.handlePlain(line)
}

// handlePlain takes a line that has no level.
func (s *output) handlePlain(line string) {
	if line = strings.TrimRight(line, "\r "); line == "" {
		return
	}
	s.record(line, startsPanic(line))
	s.log.Add(slog.LevelDebug, line)
}

// startsPanic is whether a line is how the runtime of Go begins to say why it ends;
// pages of stacks follow it.
func startsPanic(line string) bool {
	return slices.ContainsFunc([]string{"panic: ", "fatal error: ", "fatal: ", "runtime: ", "runtime/cgo: "},
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

// summary are the ones that an error carries.
func (s *output) summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.panicLine
	if text == "" {
		text = s.lastLine
	}
	return guestlog.Clean(text, maxOutputText)
}

// parseHclog reads a line of hclog. A line that only looks like one is plain: what
// a guest prints is not to be relied on, least of all its types.
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
