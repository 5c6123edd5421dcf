package raftlog_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// model is the reference implementation: a log as a map.
type model struct {
	entries     map[uint64]*raft.Log
	first, last uint64
	commit      uint64
	staged      uint64
	term        uint64
	stable      map[string]uint64
}

func (m *model) drop(low, high uint64) {
	for i := low; i <= high; i++ {
		delete(m.entries, i)
	}
}

// Random operations: append, delete at both ends, votes, commit index, reopen.
func TestLog_MatchesReference(t *testing.T) {
	storagetest.CheckProperty(t, soak.Scale(8), func(t *rapid.T, dir string) {
		cfg := storagetest.SmallLogConfig()
		cfg.VerifyLast, cfg.CacheEntries, cfg.SweepBatch, cfg.SweepPause = -1, 8, 7, -1
		open := func() *raftlog.Log {
			l, err := raftlog.Open(datadir.Layout{Dir: dir}, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := open()
		defer func() { _ = l.Close() }()
		m := &model{entries: map[uint64]*raft.Log{}, stable: map[string]uint64{}, term: 1}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				next := m.last + 1
				if m.last == 0 {
					next = rapid.Uint64Range(1, 60).Draw(t, "start")
				}
				m.term += rapid.Uint64Range(0, 1).Draw(t, "term")
				list := storagetest.Entries(next, next+rapid.Uint64Range(0, 20).Draw(t, "more"), m.term)
				must(l.StoreLogs(list))
				for _, e := range list {
					m.entries[e.Index] = e
				}
				if m.last == 0 {
					m.first = next
				}
				m.last = list[len(list)-1].Index
				m.commit = max(m.commit, min(m.staged, m.last))
			},
			"gap": func(t *rapid.T) {
				if m.last > 0 {
					if err := l.StoreLog(storagetest.Entry(m.last+2, m.term)); !errors.Is(err, raftlog.ErrGap) {
						t.Fatalf("a gap: %v", err)
					}
				}
			},
			"delete head": func(t *rapid.T) {
				if m.last == 0 {
					return
				}
				high := rapid.Uint64Range(m.first, m.last+3).Draw(t, "high")
				must(l.DeleteRange(rapid.Uint64Range(0, m.first).Draw(t, "low"), high))
				m.drop(m.first, high)
				if m.first = high + 1; m.first > m.last {
					m.first, m.last, m.commit = 0, 0, 0
				}
			},
			"delete tail": func(t *rapid.T) {
				if m.last <= m.first {
					return
				}
				low := rapid.Uint64Range(m.first+1, m.last).Draw(t, "low")
				must(l.DeleteRange(low, m.last))
				m.drop(low, m.last)
				m.last = low - 1
				m.commit, m.staged = min(m.commit, m.last), min(m.staged, m.last)
			},
			"delete between": func(t *rapid.T) {
				if m.last >= m.first+2 {
					if err := l.DeleteRange(m.first+1, m.last-1); !errors.Is(err, raftlog.ErrGap) {
						t.Fatalf("deletion in the middle: %v", err)
					}
				}
			},
			"stage": func(t *rapid.T) {
				m.staged = rapid.Uint64Range(0, m.last).Draw(t, "index")
				must(l.StageCommitIndex(m.staged))
			},
			"set": func(t *rapid.T) {
				key, value := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), rapid.Uint64().Draw(t, "value")
				must(l.SetUint64([]byte(key), value))
				m.stable[key] = value
			},
			"reopen": func(t *rapid.T) {
				if rapid.IntRange(0, 2).Draw(t, "rarely") > 0 {
					return
				}
				must(l.Close())
				l = open()
				m.staged = m.commit
			},
			"": func(t *rapid.T) {
				first, _ := l.FirstIndex()
				last, _ := l.LastIndex()
				commit, _ := l.GetCommitIndex()
				if first != m.first || last != m.last || commit != m.commit {
					t.Fatalf("%d to %d, committed %d; want %d to %d, committed %d", first, last, commit, m.first, m.last, m.commit)
				}
				for i := range uint64(120) {
					var e raft.Log
					err := l.GetLog(i, &e)
					want := m.entries[i]
					switch {
					case want == nil && !errors.Is(err, raft.ErrLogNotFound):
						t.Fatalf("entry %d is %+v, %v; want none", i, e, err)
					case want != nil && (err != nil || !reflect.DeepEqual(e, *want)):
						t.Fatalf("entry %d is %+v, %v; want %+v", i, e, err, want)
					}
				}
				for key, want := range m.stable {
					if got, err := l.GetUint64([]byte(key)); got != want || err != nil {
						t.Fatalf("%s is %d, %v; want %d", key, got, err, want)
					}
				}
			},
		})
	})
}
