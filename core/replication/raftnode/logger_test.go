package raftnode_test

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/cede-scheduler/cede/core/replication/raftnode"
)

func TestNewLogger_TranslatesLevelsAndKeys(t *testing.T) {
	var out bytes.Buffer
	l := raftnode.NewLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	l.Debug("omitted")
	l.Warn("failed to contact", "server-id", "s1", "error", io.EOF, "list", hclog.Fmt("%d-%d", 1, 2))
	line := out.String()
	for _, want := range []string{"level=WARN", "msg=raft", `event="failed to contact"`, "server_id=s1", "err=EOF", "list=1-2"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %q", want, line)
		}
	}
	if strings.Contains(line, "omitted") {
		t.Error("a debug line is logged at level info")
	}
	out.Reset()
	l.Warn("skipping application of old log", "index", uint64(0)) // at the start of every new server
	l.Warn("skipping application of old log", "index", uint64(7))
	if lines := out.String(); strings.Count(lines, "level=WARN") != 1 || !strings.Contains(lines, "index=7") {
		t.Errorf("want one warning, for index 7:\n%s", lines)
	}
}
