package broker

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
)

// Against a map, with hashes that collide at will.
func TestTable_AgainstMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var tab table
		want := map[uint32]uint32{} // id -> hash
		next := uint32(0)
		spread := rapid.SampledFrom([]uint32{1, 3, 60, 1 << 31}).Draw(rt, "spread")
		rt.Repeat(map[string]func(*rapid.T){
			"insert": func(rt *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(rt, "n") {
					next++
					hash := rapid.Uint32Range(0, spread).Draw(rt, "hash")
					tab.insert(hash, next)
					want[next] = hash
				}
			},
			"remove": func(rt *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(rt, "n") {
					id := rapid.Uint32Range(1, next+1).Draw(rt, "id")
					if hash, ok := want[id]; ok {
						tab.remove(hash, id)
						delete(want, id)
					}
				}
			},
			"": func(rt *rapid.T) {
				if tab.used != len(want) {
					rt.Fatalf("used %d, want %d", tab.used, len(want))
				}
				for id := uint32(1); id <= next; id++ {
					hash, ok := want[id]
					got := tab.find(hash, func(x uint32) bool { return x == id })
					if ok != (got == id) {
						rt.Fatalf("found %d under %d; want %v", got, hash, ok)
					}
				}
			},
		})
	})
}

func TestArena_NumbersAreReusedAndStay(t *testing.T) {
	t.Parallel()
	var a arena[int]
	for i := range 3 * chunk {
		id, v := a.get()
		if *v = i; id != uint32(i+1) {
			t.Fatalf("number %d is %d", i, id)
		}
	}
	first := a.at(7)
	*first = 0
	a.put(7)
	if id, v := a.get(); id != 7 || v != first {
		t.Errorf("got %d %p, want 7 %p", id, v, first)
	}
	for id := uint32(3 * chunk); id > 0; id-- {
		a.put(id)
	}
	if id, v := a.get(); id != 1 || *v != 0 || len(a.chunks) != 3 {
		t.Errorf("emptied, it gives number %d, of %d chunks", id, len(a.chunks))
	}
}

// A heap keeps stale items until they come up; raised a thousand times, one
// evaluation must not fill it.
func TestHeaps_StaleItemsAreClearedOut(t *testing.T) {
	t.Parallel()
	b, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	b.Enable()
	defer b.Disable()
	ev := model.Evaluation{ID: "e", JobID: "j"}
	for i := range uint64(1000) {
		c := ev
		c.ModifyIndex, c.Priority = i, int32(i%50)
		if i%2 == 0 {
			c.WaitUntil = b.start.Add(time.Hour).UnixNano()
		}
		b.Enqueue(&c)
	}
	if n, m := b.queue.ready[0].Len(), b.due.delays.Len(); n > 70 || m > 70 {
		t.Errorf("%d items ready and %d delayed for one evaluation", n, m)
	}
}
