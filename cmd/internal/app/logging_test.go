package app

import (
	"log/slog"
	"strings"
	"testing"
)

func TestRaftLog_OmitsFirstElectionOfDevServer(t *testing.T) {
	t.Parallel()
	for _, dev := range []bool{false, true} {
		var text strings.Builder
		log := raftLogger(slog.New(slog.NewTextHandler(&text, nil)), dev)
		log.Warn("raft", "event", "heartbeat timeout reached, starting election")
		log.Warn("raft", "event", "something else")
		if got := strings.Contains(text.String(), "heartbeat timeout"); got == dev {
			t.Errorf("dev %t: %s", dev, text.String())
		}
		if !strings.Contains(text.String(), "something else") {
			t.Errorf("dev %t: other warnings are lost", dev)
		}
	}
}
