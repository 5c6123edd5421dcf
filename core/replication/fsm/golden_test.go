package fsm_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/replication/snapshot"
)

// testdata/logs.golden holds logs of random entries, recorded before the first
// release, each followed by a line with the hash of the state and a hash of all
// results. A server that replays an old log must arrive at the same state; this
// file is never rewritten. (A refusal's message is stored in the state if the entry
// has an idempotency key. Refused entries of the file have none, so that messages
// may be reworded.)
func TestFSM_RecordedLogsYieldTheSameState(t *testing.T) {
	file, err := os.ReadFile("testdata/logs.golden")
	if err != nil {
		t.Fatal(err)
	}
	s, results := newServer(), sha256.New()
	logs := 0
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSpace(line)
		if want, ok := strings.CutPrefix(line, "= "); ok {
			if got := fmt.Sprintf("%x %x", snapshot.Hash(s.Snapshot()), results.Sum(nil)); got != want {
				t.Errorf("log %d: state and results %s, want %s", logs, got, want)
			}
			s, results = newServer(), sha256.New()
			logs++
			continue
		}
		data, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		r := s.ApplyData(t, data)
		code := ""
		if r.Err != nil {
			code = r.Err.Code
		}
		fmt.Fprintln(results, r.Index, code, r.Freed, r.Returned, r.Placed, r.Dropped, r.Replayed)
		for _, ev := range r.Evals {
			fmt.Fprintln(results, ev.ID, ev.Status, ev.TriggeredBy)
		}
	}
	if logs < 8 {
		t.Errorf("%d logs", logs)
	}
}
