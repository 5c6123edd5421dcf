package raftlog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

func benchEntries(first, last uint64) []*raft.Log {
	data := storagetest.RandomBytes(1024, 1)
	list := storagetest.Entries(first, last, 1)
	for _, e := range list {
		e.Data = data
	}
	return list
}

// Entries have 1 KiB; every batch is synced.
func BenchmarkStorageStoreLogs(b *testing.B) {
	for _, size := range []uint64{1, 64, 512} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			l := storagetest.OpenLog(b, b.TempDir())
			batch := benchEntries(1, size)
			next := uint64(1)
			b.SetBytes(int64(size) * 1024)
			for b.Loop() {
				for _, e := range batch {
					e.Index = next
					next++
				}
				if err := l.StoreLogs(batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

func benchLog(b *testing.B, entries uint64) *raftlog.Log {
	b.Helper()
	cfg := storagetest.SmallLogConfig()
	cfg.CacheEntries = 512
	l, err := raftlog.Open(datadir.Layout{Dir: b.TempDir()}, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	for i := uint64(1); i <= entries; i += 500 {
		if err := l.StoreLogs(benchEntries(i, i+499)); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

func BenchmarkStorageGetLog(b *testing.B) {
	const n = 20_000
	for _, c := range []struct {
		name        string
		first, many uint64
	}{{"recent", n - 400, 400}, {"old", 1, n - 1000}} {
		b.Run(c.name, func(b *testing.B) {
			l := benchLog(b, n)
			var e raft.Log
			i := uint64(0)
			for b.Loop() {
				if err := l.GetLog(c.first+i*7919%c.many, &e); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// head: time until 10,240 entries are logically deleted; sweep: until they have left the
// disk; tail: 1,024 entries.
func BenchmarkStorageDeleteRange(b *testing.B) {
	fill := func(b *testing.B, l *raftlog.Log, n uint64) (first, last uint64) {
		b.Helper()
		b.StopTimer()
		defer b.StartTimer()
		last, _ = l.LastIndex()
		for end := last + n; last < end; last += 512 {
			if err := l.StoreLogs(benchEntries(last+1, last+512)); err != nil {
				b.Fatal(err)
			}
		}
		first, _ = l.FirstIndex()
		return first, last
	}
	for _, sweep := range []bool{false, true} {
		name := "head=10240"
		if sweep {
			name = "sweep=10240"
		}
		b.Run(name, func(b *testing.B) {
			cfg := storagetest.SmallLogConfig()
			cfg.SweepPause = -1
			l, err := raftlog.Open(datadir.Layout{Dir: b.TempDir()}, cfg)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = l.Close() })
			for range b.N {
				first, last := fill(b, l, 10_240)
				if err := l.DeleteRange(first, last-1); err != nil {
					b.Fatal(err)
				}
				for sweep && l.IsSweeping() {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	b.Run("tail=1024", func(b *testing.B) {
		l := benchLog(b, 500)
		for range b.N {
			_, last := fill(b, l, 1024)
			if err := l.DeleteRange(last-1023, last); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkStorageSet(b *testing.B) {
	l := storagetest.OpenLog(b, b.TempDir())
	for i := uint64(0); b.Loop(); i++ {
		if err := l.SetUint64([]byte("CurrentTerm"), i); err != nil {
			b.Fatal(err)
		}
	}
}
