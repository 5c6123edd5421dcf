package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cede-scheduler/cede/sdk/client"
)

// history is what people who change and read the same jobs at the same time were
// told, and when. A job is a register: its meta holds who wrote it last.
type history struct {
	t     *testing.T
	began time.Time
	group sync.WaitGroup
	stop  context.CancelFunc

	mu   sync.Mutex
	ops  []porcupine.Operation
	news int // acknowledged writes
}

// touch is one thing that somebody did to a job.
type touch struct {
	job   string
	write string // "": it is read
}

// registers says what may be read of a job: what was written last.
var registers = porcupine.Model{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		of := map[string][]porcupine.Operation{}
		for _, op := range all {
			job := op.Input.(touch).job
			of[job] = append(of[job], op)
		}
		for _, part := range of {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, in, out any) (bool, any) {
		if w := in.(touch).write; w != "" {
			return true, w
		}
		return out == state, state
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %v", in, out) },
}

// historyJobs is how many jobs people share.
const historyJobs = 3

// newHistory has people at work on shared jobs until end. Each person has a client.
func newHistory(t *testing.T, people []*client.Client) *history {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	h := &history{t: t, began: time.Now(), stop: stop}
	for who, c := range people {
		rng := rand.New(rand.NewPCG(rand.Uint64(), uint64(who)))
		h.group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				x := touch{job: fmt.Sprint("shared-", rng.IntN(historyJobs))}
				if rng.IntN(3) > 0 {
					x.write = fmt.Sprint(who, "/", n)
				}
				h.do(ctx, c, who, x)
				select { // people, and no storm: a checker has to come to an end
				case <-ctx.Done():
				case <-time.After(time.Duration(10+rng.IntN(20)) * time.Millisecond):
				}
			}
		})
	}
	t.Cleanup(stop)
	return h
}

// do does one thing and notes it. Of a write that failed nobody knows whether it was
// done, or will be; of a read that failed there is nothing to note.
func (h *history) do(ctx context.Context, c *client.Client, who int, x touch) {
	op := porcupine.Operation{ClientId: who, Input: x, Call: time.Since(h.began).Nanoseconds()}
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var err error
	if x.write == "" {
		op.Output, err = readShared(limited, c, x.job)
	} else {
		j := simJob(x.job)
		j.Meta = map[string]string{"by": x.write}
		_, err = c.Jobs().Register(limited, j, nil)
	}
	op.Return = time.Since(h.began).Nanoseconds()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil && x.write != "":
		h.news++
	case err != nil && x.write == "":
		return
	case err != nil:
		op.Return = math.MaxInt64
	}
	h.ops = append(h.ops, op)
}

// readShared is who wrote a job last; "": nobody did.
func readShared(ctx context.Context, c *client.Client, id string) (string, error) {
	j, _, err := c.Jobs().Get(ctx, id, &client.QueryOptions{Consistent: true})
	switch {
	case client.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return j.Meta["by"], nil
}

// acked is how many writes were acknowledged.
func (h *history) acked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.news
}

// goesOn waits until so many more writes are acknowledged.
func (h *history) goesOn(writes int) {
	h.t.Helper()
	before := h.acked()
	eventually(h.t, strconv.Itoa(writes)+" writes", func() bool { return h.acked() >= before+writes })
}

// end has everybody stop, reads what is there, and holds all of it to what may be.
func (h *history) end(c *client.Client) {
	h.t.Helper()
	h.stop()
	h.group.Wait()
	for n := range historyJobs {
		id := fmt.Sprint("shared-", n)
		eventually(h.t, "the job is read", func() bool {
			at := time.Since(h.began).Nanoseconds()
			ctx, cancel := context.WithTimeout(h.t.Context(), 5*time.Second)
			defer cancel()
			by, err := readShared(ctx, c, id)
			if err != nil {
				return false
			}
			h.ops = append(h.ops, porcupine.Operation{ClientId: -1, Input: touch{job: id}, Output: by, Call: at, Return: time.Since(h.began).Nanoseconds()})
			return true
		})
	}
	switch porcupine.CheckOperationsTimeout(registers, h.ops, time.Minute) {
	case porcupine.Illegal:
		h.t.Errorf("what %d requests were answered fits no order", len(h.ops))
	case porcupine.Unknown:
		h.t.Logf("whether %d answers fit an order was not found out within a minute", len(h.ops))
	case porcupine.Ok:
		h.t.Logf("%d answers, %d of them to writes, fit one order", len(h.ops), h.news)
	}
}

// The check finds what it is for: somebody reads what was replaced before the
// reading began.
func TestHistory_KnowsAStaleRead(t *testing.T) {
	h := []porcupine.Operation{
		{ClientId: 0, Input: touch{"j", "a"}, Call: 1, Return: 2},
		{ClientId: 0, Input: touch{"j", "b"}, Call: 3, Return: 4},
		{ClientId: 1, Input: touch{job: "j"}, Output: "a", Call: 5, Return: 6},
	}
	if porcupine.CheckOperations(registers, h) {
		t.Error("a stale read is allowed")
	}
	h[2].Output = "b"
	if !porcupine.CheckOperations(registers, h) {
		t.Error("a good read is not")
	}
	h[1].Return = math.MaxInt64 // nobody knows
	h[2].Output = "a"
	if !porcupine.CheckOperations(registers, h) {
		t.Error("a write that failed must have been done")
	}
}
