package logwriter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// leaderless is a log without a leader.
type leaderless struct{ logwriter.Log }

func (leaderless) IsLeader() bool            { return false }
func (leaderless) Leader() (id, addr string) { return "", "" }

// A lone server with a full disk names the disk instead of an election that cannot succeed.
func TestWriter_NamesFullDiskIfThereIsNoLeader(t *testing.T) {
	var full error
	w := &logwriter.Writer{ServerID: "s1", Log: leaderless{}, Storage: func() error { return full }}
	for _, disk := range []error{nil, errors.New("12 MiB are free under /data, and writing requires 256 MiB")} {
		full = disk
		for name, err := range map[string]error{"check": w.CheckLeader(), "write": w.Unwritten(replication.ErrNotLeader)} {
			e, ok := errors.AsType[*apierror.Error](err)
			if !ok || e.Code != apierror.CodeNoLeader || !errors.Is(err, replication.ErrNotLeader) {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := strings.Contains(e.Error(), "12 MiB are free under /data"); got != (disk != nil) || disk != nil && strings.Contains(e.Hint, "electing") {
				t.Errorf("%s with the disk %v: %v, hint %q", name, disk, e, e.Hint)
			}
		}
	}
	if err := w.Unwritten(replication.ErrBusy); strings.Contains(err.Error(), "12 MiB") {
		t.Errorf("another error: %v", err)
	}
}
