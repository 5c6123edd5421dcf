package raftlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

// logStore is the tested interface: a log store that is also a stable store. Raft requires
// both of one server, though not in one store.
type logStore interface {
	raft.LogStore
	raft.StableStore
}

// An opener returns an empty store that is closed with the test.
type opener func(t *testing.T) logStore

// conformance runs every check that Raft relies on, each with a new store.
func conformance(t *testing.T, open opener) {
	for _, c := range []struct {
		name string
		test func(*testing.T, logStore)
	}{
		{"EmptyAtFirst", emptyAtFirst},
		{"ReturnsStoredEntries", returnsStoredEntries},
		{"StartsAtAnyIndex", startsAtAnyIndex},
		{"DeletesTheOldest", deletesTheOldest},
		{"DeletesTheNewestAndContinues", deletesTheNewest},
		{"DeletesAllAndRestarts", deletesAll},
		{"DeletesOnlyExisting", deletesOnlyExisting},
		{"LargeEntriesAndBatches", largeEntries},
		{"StableValues", stableValues},
		{"CommitIndex", commitIndex},
		{"ConcurrentReaders", concurrentReaders},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// must fails the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds fails the test if the store does not hold exactly the given entries.
func holds(t *testing.T, s raft.LogStore, entries ...*raft.Log) {
	t.Helper()
	var wantFirst, wantLast uint64
	if len(entries) > 0 {
		wantFirst, wantLast = entries[0].Index, entries[len(entries)-1].Index
	}
	first, err := s.FirstIndex()
	must(t, err)
	last, err := s.LastIndex()
	must(t, err)
	if first != wantFirst || last != wantLast {
		t.Fatalf("store holds %d to %d, want %d to %d", first, last, wantFirst, wantLast)
	}
	for _, want := range entries {
		var got raft.Log
		if err := s.GetLog(want.Index, &got); err != nil {
			t.Fatalf("entry %d: %v", want.Index, err)
		}
		if !reflect.DeepEqual(*want, got) {
			t.Fatalf("entry %d is\n%.200v, want\n%.200v", want.Index, got, *want)
		}
	}
	for _, gone := range []uint64{wantFirst - 1, wantLast + 1, 0, 1 << 40} {
		var got raft.Log
		if err := s.GetLog(gone, &got); (wantFirst == 0 || gone < wantFirst || gone > wantLast) && !errors.Is(err, raft.ErrLogNotFound) {
			t.Fatalf("entry %d, which is outside the log: %+v, %v", gone, got, err)
		}
	}
}

// emptyAtFirst requires the indexes 0 of a new store: Raft takes such a server for a
// new one.
func emptyAtFirst(t *testing.T, s logStore) {
	holds(t, s)
	must(t, s.StoreLogs(nil))
	holds(t, s)
}

// returnsStoredEntries compares every field of an entry, for each way to store it.
func returnsStoredEntries(t *testing.T, s logStore) {
	list := []*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("c"), AppendedAt: time.Unix(1_700_000_000, 123456789)},
		{Index: 2, Term: 1, Type: raft.LogNoop},
		{Index: 3, Term: 4, Type: raft.LogCommand, Data: []byte{0, 1, 2}, Extensions: []byte("ext")},
		{Index: 4, Term: 4, Type: raft.LogBarrier, Extensions: []byte("ext")},
	}
	must(t, s.StoreLog(list[0]))
	must(t, s.StoreLogs(list[1:]))
	holds(t, s, list...)
}

// startsAtAnyIndex stores entries far above 1, as a server does that received a
// snapshot.
func startsAtAnyIndex(t *testing.T, s logStore) {
	list := storagetest.Entries(1_000_000, 1_000_010, 7)
	must(t, s.StoreLogs(list))
	holds(t, s, list...)
}

// deletesTheOldest deletes entries that a snapshot covers, also a single one.
func deletesTheOldest(t *testing.T, s logStore) {
	list := storagetest.Entries(1, 1000, 1)
	must(t, s.StoreLogs(list))
	must(t, s.DeleteRange(1, 1))
	holds(t, s, list[1:]...)
	must(t, s.DeleteRange(1, 990))
	holds(t, s, list[990:]...)
	more := storagetest.Entries(1001, 1005, 2)
	must(t, s.StoreLogs(more))
	holds(t, s, append(list[990:], more...)...)
}

// deletesTheNewest replaces the end of the log, as a follower does if it conflicts with
// the leader's. The new entries must be found in their place, and not the old ones.
func deletesTheNewest(t *testing.T, s logStore) {
	list := storagetest.Entries(1, 1000, 1)
	must(t, s.StoreLogs(list))
	must(t, s.DeleteRange(990, 1000))
	holds(t, s, list[:989]...)
	more := storagetest.Entries(990, 995, 3)
	must(t, s.StoreLogs(more))
	holds(t, s, append(list[:989:989], more...)...)
	must(t, s.DeleteRange(2, 995))
	holds(t, s, list[0])
}

// deletesAll empties the log and continues below the deleted entries, because a
// restored snapshot may be older than they are.
func deletesAll(t *testing.T, s logStore) {
	must(t, s.StoreLogs(storagetest.Entries(5, 50, 1)))
	must(t, s.DeleteRange(5, 50))
	holds(t, s)
	list := storagetest.Entries(100, 110, 2)
	must(t, s.StoreLogs(list))
	holds(t, s, list...)
	must(t, s.DeleteRange(100, 110))
	lower := storagetest.Entries(7, 9, 3)
	must(t, s.StoreLogs(lower))
	holds(t, s, lower...)
}

// deletesOnlyExisting repeats deletions, as Raft does after a crash: a missing range
// must not be an error.
func deletesOnlyExisting(t *testing.T, s logStore) {
	must(t, s.DeleteRange(1, 10))
	holds(t, s)
	list := storagetest.Entries(11, 20, 1)
	must(t, s.StoreLogs(list))
	must(t, s.DeleteRange(1, 10))
	holds(t, s, list...)
	must(t, s.DeleteRange(1, 12))
	holds(t, s, list[2:]...)
	must(t, s.DeleteRange(1, 12))
	holds(t, s, list[2:]...)
}

// largeEntries exceeds the size of one Badger transaction with a batch, and with a
// single entry.
func largeEntries(t *testing.T, s logStore) {
	var list []*raft.Log
	for i := uint64(1); i <= 12; i++ {
		list = append(list, &raft.Log{Index: i, Term: 1, Data: bytes.Repeat([]byte{byte(i)}, 512<<10)})
	}
	list = append(list, &raft.Log{Index: 13, Term: 1, Data: bytes.Repeat([]byte{13}, 3<<20)})
	must(t, s.StoreLogs(list))
	holds(t, s, list...)
}

// stableValues requires that a missing value reads as zero or not found, and that
// entries do not affect values.
func stableValues(t *testing.T, s logStore) {
	n, err := s.GetUint64([]byte("CurrentTerm"))
	if n != 0 || err != nil && err.Error() != "not found" {
		t.Errorf("unset number: %d, %v", n, err)
	}
	b, err := s.Get([]byte("LastVoteCand"))
	if len(b) != 0 || err != nil && err.Error() != "not found" {
		t.Errorf("unset value: %q, %v", b, err)
	}
	for term := range uint64(5) {
		must(t, s.SetUint64([]byte("CurrentTerm"), term))
		must(t, s.Set([]byte("LastVoteCand"), fmt.Appendf(nil, "server %d", term)))
		n, err := s.GetUint64([]byte("CurrentTerm"))
		must(t, err)
		b, err := s.Get([]byte("LastVoteCand"))
		must(t, err)
		if n != term || string(b) != fmt.Sprintf("server %d", term) {
			t.Errorf("set %d, got %d and %q", term, n, b)
		}
	}
	must(t, s.StoreLogs(storagetest.Entries(1, 3, 1)))
	must(t, s.DeleteRange(1, 3))
	if n, err := s.GetUint64([]byte("CurrentTerm")); n != 4 || err != nil {
		t.Errorf("after entries were deleted: %d, %v", n, err)
	}
}

// commitIndex requires that a staged index is stored with the next entries and survives
// deletions.
func commitIndex(t *testing.T, s logStore) {
	c, ok := s.(raft.CommitTrackingLogStore)
	if !ok {
		t.Skip("the store does not track commits")
	}
	expect := func(want uint64) {
		t.Helper()
		if got, err := c.GetCommitIndex(); got != want || err != nil {
			t.Errorf("commit index %d, error %v; want %d", got, err, want)
		}
	}
	expect(0)
	must(t, s.StoreLogs(storagetest.Entries(1, 10, 1)))
	must(t, c.StageCommitIndex(7))
	must(t, s.StoreLogs(storagetest.Entries(11, 12, 1)))
	expect(7)
	must(t, s.DeleteRange(1, 5))
	expect(7)
}

// concurrentReaders reads while entries are written and deleted: a reader gets the
// entry that it requested, or ErrLogNotFound. The race detector finds unguarded fields.
func concurrentReaders(t *testing.T, s logStore) {
	const rounds = 30
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				first, _ := s.FirstIndex()
				last, _ := s.LastIndex()
				for _, i := range []uint64{first, (first + last) / 2, last} {
					var e raft.Log
					if err := s.GetLog(i, &e); err == nil && e.Index != i {
						t.Errorf("requested entry %d, got %d", i, e.Index)
					} else if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
						t.Errorf("entry %d: %v", i, err)
					}
					runtime.Gosched()
				}
			}
		})
	}
	next := uint64(1)
	for round := range uint64(rounds) {
		must(t, s.StoreLogs(storagetest.Entries(next, next+19, round+1)))
		next += 20
		switch round % 3 {
		case 1:
			must(t, s.DeleteRange(next-5, next-1))
			next -= 5
		case 2:
			first, err := s.FirstIndex()
			must(t, err)
			must(t, s.DeleteRange(first, next-10))
		}
	}
	close(done)
	readers.Wait()
}
