package storage_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/doctor"
	"github.com/cede-scheduler/cede/core/storage/history"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// The child is killed at random moments, repeatedly on one directory.
func TestKill_KeepsAcknowledgedEntries(t *testing.T) {
	dir := t.TempDir()
	var a acked
	for range soak.Scale(4) {
		p := spawn(t, "append", dir)
		left := 20 + rand.IntN(150)
		p.read(func(line string) bool {
			if !a.parse(line) {
				t.Fatal(line)
			}
			left--
			return left > 0
		})
		p.kill(func(line string) { a.parse(line) })
		a.check(t, dir)
	}
	if a.last < 100 {
		t.Errorf("only %d entries were written: %+v", a.last, a)
	}
}

// History and modules survive a killed process too.
func TestKill_KeepsHistoryAndModules(t *testing.T) {
	dir := t.TempDir()
	last, blobs := uint64(0), map[string]bool{}
	parse := func(line string) {
		var digest string
		if _, err := fmt.Sscanf(line, "event %d", &last); err == nil {
			return
		}
		if _, err := fmt.Sscanf(line, "blob %s", &digest); err == nil {
			blobs[digest] = true
		}
	}
	for range soak.Scale(2) {
		p := spawn(t, "keep", dir)
		left := 100 + rand.IntN(100)
		p.read(func(line string) bool {
			if strings.HasPrefix(line, "error") {
				t.Fatal(line)
			}
			parse(line)
			left--
			return left > 0
		})
		p.kill(parse)
		s, err := storage.Open(storage.Config{Dir: dir, Log: storagetest.SmallLogConfig()})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.History().List(history.Query{Limit: 1 << 20})
		if err != nil || uint64(len(list)) < last || int64(len(list)) != s.History().Stats().Records {
			t.Errorf("%d records, error %v; %d were acknowledged, accounts list %d", len(list), err, last, s.History().Stats().Records)
		}
		for i, r := range list {
			if !bytes.Equal(r.Data, fmt.Appendf(nil, "event %d", i+1)) {
				t.Fatalf("record %d holds %q", i+1, r.Data)
			}
		}
		for digest := range blobs {
			if _, err := s.Blobs().Get(digest); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if last == 0 || len(blobs) == 0 {
		t.Errorf("%d events and %d modules were written", last, len(blobs))
	}
}

func TestOpen_RefusesDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	storagetest.OpenStore(t, dir)
	_, err := storage.Open(storagetest.Config(dir))
	if err == nil || !strings.Contains(err.Error(), "stop that process, or give each server its own directory") {
		t.Errorf("%v", err)
	}
	if _, err := doctor.Run(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "has locked") {
		t.Errorf("%v", err)
	}
}
