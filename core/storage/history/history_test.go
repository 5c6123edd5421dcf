package history_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/history"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// fakeClock is a time that a test sets.
type fakeClock struct{ ns atomic.Int64 }

func (c *fakeClock) now() time.Time { return time.Unix(1_800_000_000, c.ns.Load()) }

func withHistory(h history.Config) func(*storage.Config) {
	return func(c *storage.Config) { c.History = h }
}

func appendTo(t testing.TB, h *history.Store, topic string, index, seq uint64, data string) {
	t.Helper()
	if err := h.Append(topic, index, seq, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func listed(t testing.TB, h *history.Store, q history.Query) string {
	t.Helper()
	list, err := h.List(q)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, r := range list {
		fmt.Fprintf(&b, "%s%d.%d=%s ", r.Topic, r.Index, r.Seq, r.Data)
	}
	return b.String()
}

func TestStore_ListsForwardAndBackwardByTopic(t *testing.T) {
	dir := t.TempDir()
	s := storagetest.OpenStore(t, dir)
	h := s.History()
	appendTo(t, h, "e", 1, 0, "a")
	appendTo(t, h, "d", 1, 1, "b")
	appendTo(t, h, "e", 3, 0, "c")
	appendTo(t, h, "d", 3, 0, "d")
	appendTo(t, h, "dd", 5, 0, "x")
	appendTo(t, h, "e", 3, 0, "again")
	check := func(h *history.Store) {
		t.Helper()
		for _, c := range []struct {
			q    history.Query
			want string
		}{
			{history.Query{}, "e1.0=a d1.1=b d3.0=d e3.0=c dd5.0=x "},
			{history.Query{From: 2}, "d3.0=d e3.0=c dd5.0=x "},
			{history.Query{From: 1, Limit: 2}, "e1.0=a d1.1=b "},
			{history.Query{From: 9}, ""},
			{history.Query{Topic: "d"}, "d1.1=b d3.0=d "},
			{history.Query{Topic: "e", From: 2}, "e3.0=c "},
			{history.Query{Backward: true}, "dd5.0=x e3.0=c d3.0=d d1.1=b e1.0=a "},
			{history.Query{Backward: true, From: 3, Limit: 3}, "e3.0=c d3.0=d d1.1=b "},
			{history.Query{Backward: true, From: 2, Topic: "d"}, "d1.1=b "},
			{history.Query{Backward: true, Topic: "dd"}, "dd5.0=x "},
			{history.Query{Topic: "none"}, ""},
		} {
			if got := listed(t, h, c.q); got != c.want {
				t.Errorf("%+v: got %q, want %q", c.q, got, c.want)
			}
		}
	}
	check(h)
	if s := h.Stats(); s.Records != 5 || s.Last != (history.Position{Index: 5}) {
		t.Errorf("%+v", s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	h = storagetest.OpenStore(t, dir).History()
	check(h)
	if s := h.Stats(); s.Records != 5 {
		t.Errorf("after reopening: %+v", s)
	}
}

func TestStore_ContinuesPages(t *testing.T) {
	h := storagetest.OpenStore(t, t.TempDir()).History()
	for i := range uint64(50) {
		appendTo(t, h, string(rune('a'+i%3)), 1+i/4, i%4, fmt.Sprint(i))
	}
	for _, q := range []history.Query{{}, {Backward: true}, {Topic: "b"}, {Topic: "b", Backward: true}} {
		whole := listed(t, h, q)
		var pages string
		q.Limit = 3
		for {
			list, err := h.List(q)
			if err != nil {
				t.Fatal(err)
			}
			pages += listed(t, h, q)
			if len(list) < q.Limit {
				break
			}
			q.After = &list[len(list)-1]
		}
		if pages != whole {
			t.Errorf("%+v:\n%s\n%s", q, pages, whole)
		}
	}
}

func TestStore_StaysWithinSize(t *testing.T) {
	dir := t.TempDir()
	const limit = 256 << 10
	s := storagetest.OpenStore(t, dir, withHistory(history.Config{MaxBytes: limit}))
	h := s.History()
	data := string(storagetest.RandomBytes(1000, 1))
	for i := range uint64(2000) {
		appendTo(t, h, "e", i+1, 0, data)
	}
	within(t, func() bool {
		st := h.Stats()
		return st.Bytes <= limit
	})
	st := h.Stats()
	if st.Bytes < limit/2 || st.Last.Index != 2000 {
		t.Errorf("deleted too much: %+v", st)
	}
	list, err := h.List(history.Query{Limit: 10_000})
	if err != nil || int64(len(list)) != st.Records || list[0].Position != st.First {
		t.Errorf("%d records, error %v; accounts: %+v", len(list), err, st)
	}
	appendTo(t, h, "e", 1, 0, "long ago")
	if got := h.Stats(); got != st {
		t.Errorf("deleted records came back: %+v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	h = storagetest.OpenStore(t, dir, withHistory(history.Config{MaxBytes: limit})).History()
	if got := h.Stats(); got != st {
		t.Errorf("after reopening %+v, before %+v", got, st)
	}
}

func TestStore_DeletesOldRecords(t *testing.T) {
	c := &fakeClock{}
	dir := t.TempDir()
	open := withHistory(history.Config{MaxAge: 16 * time.Hour, Now: c.now, TrimEvery: time.Millisecond})
	s := storagetest.OpenStore(t, dir, open)
	for i := range uint64(48) {
		appendTo(t, s.History(), "e", i+1, 0, "x")
		c.ns.Add(int64(30 * time.Minute))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	h := storagetest.OpenStore(t, dir, open).History()
	within(t, func() bool {
		first := h.Stats().First.Index
		return first >= 13 && first <= 17
	})
	within(t, func() bool { // trimming may continue between the two reads
		list, err := h.List(history.Query{})
		return err == nil && list[0].Position == h.Stats().First && list[len(list)-1].Index == 48
	})
}

// within waits up to ten seconds for background work.
func within(t testing.TB, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("condition not met within ten seconds")
}

// The reference is a sorted list; records arrive late and twice, and the store is reopened
// in between.
func TestStore_MatchesReference(t *testing.T) {
	storagetest.CheckProperty(t, soak.Scale(4), func(t *rapid.T, dir string) {
		open := func() *storage.Store {
			s, err := storage.Open(storagetest.Config(dir, withHistory(history.Config{SegmentBytes: 400})))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open()
		defer func() { _ = s.Close() }()
		var model []history.Record
		order := func(a, b history.Record) int {
			return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Topic, b.Topic))
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				r := history.Record{Topic: rapid.SampledFrom([]string{"a", "b", "aa"}).Draw(t, "topic")}
				r.Index, r.Seq = rapid.Uint64Range(1, 30).Draw(t, "index"), rapid.Uint64Range(0, 3).Draw(t, "seq")
				r.Data = rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")
				if err := s.History().Append(r.Topic, r.Index, r.Seq, r.Data); err != nil {
					t.Fatal(err)
				}
				if at, there := slices.BinarySearchFunc(model, r, order); !there {
					model = slices.Insert(model, at, r)
				}
			},
			"reopen": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
					return
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open()
			},
			"list": func(t *rapid.T) {
				q := history.Query{
					From: rapid.Uint64Range(0, 31).Draw(t, "from"), Backward: rapid.Bool().Draw(t, "backward"),
					Topic: rapid.SampledFrom([]string{"", "a", "b", "aa"}).Draw(t, "topic"), Limit: rapid.IntRange(1, 50).Draw(t, "limit"),
				}
				want := slices.Clone(model)
				if q.Backward {
					slices.Reverse(want)
				}
				want = slices.DeleteFunc(want, func(r history.Record) bool {
					return q.Topic != "" && r.Topic != q.Topic || !q.Backward && r.Index < q.From || q.Backward && q.From > 0 && r.Index > q.From
				})
				want = want[:min(len(want), q.Limit)]
				got, err := s.History().List(q)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.EqualFunc(got, want, func(a, b history.Record) bool { return order(a, b) == 0 && bytes.Equal(a.Data, b.Data) }) {
					t.Fatalf("%+v:\n%v\nwant\n%v", q, got, want)
				}
			},
			"": func(t *rapid.T) {
				if n := s.History().Stats().Records; n != int64(len(model)) {
					t.Fatalf("%d records, want %d", n, len(model))
				}
			},
		})
	})
}

func BenchmarkStorageHistoryAppend(b *testing.B) {
	h := storagetest.OpenStore(b, b.TempDir()).History()
	data := storagetest.RandomBytes(300, 1)
	for i := uint64(1); b.Loop(); i++ {
		if err := h.Append("event", i, 0, data); err != nil {
			b.Fatal(err)
		}
	}
}
