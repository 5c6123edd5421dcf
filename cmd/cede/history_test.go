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
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A history records the requests of concurrent clients to shared jobs with the times of
// request and response. Each job acts as a register: its meta holds the last write.
type history struct {
	t     *testing.T
	start time.Time
	wg    sync.WaitGroup
	stop  context.CancelFunc

	mu          sync.Mutex
	ops         []porcupine.Operation
	ackedWrites int
}

// An access is a read or a write of a shared job.
type access struct {
	job   string
	write string // "" for a read
}

// registerModel is the sequential model of a job: a read returns the last write.
var registerModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		byJob := map[string][]porcupine.Operation{}
		for _, op := range all {
			job := op.Input.(access).job
			byJob[job] = append(byJob[job], op)
		}
		for _, part := range byJob {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, in, out any) (bool, any) {
		if w := in.(access).write; w != "" {
			return true, w
		}
		return out == state, state
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %v", in, out) },
}

// historyJobs is the number of shared jobs.
const historyJobs = 3

// newHistory starts one goroutine per client that reads and writes shared jobs until
// check is called.
func newHistory(t *testing.T, clients []*client.Client) *history {
	t.Helper()
	pause := 80 * time.Millisecond // on average, between two requests of a client
	if soak.Full() {
		pause = 20 * time.Millisecond
	}
	ctx, stop := context.WithCancel(t.Context())
	h := &history{t: t, start: time.Now(), stop: stop}
	for id, c := range clients {
		rng := rand.New(rand.NewPCG(rand.Uint64(), uint64(id)))
		h.wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				x := access{job: fmt.Sprint("shared-", rng.IntN(historyJobs))}
				if rng.IntN(3) > 0 {
					x.write = fmt.Sprint(id, "/", n)
				}
				h.execute(ctx, c, id, x)
				select { // bounds the rate, because the cost of the check grows quickly with the history
				case <-ctx.Done():
				case <-time.After(pause/2 + rand.N(pause)):
				}
			}
		})
	}
	t.Cleanup(stop)
	return h
}

// execute performs one access and records it. A failed write may still be applied at any
// later time, so its return time is infinite. A failed read is not recorded.
func (h *history) execute(ctx context.Context, c *client.Client, clientID int, x access) {
	op := porcupine.Operation{ClientId: clientID, Input: x, Call: time.Since(h.start).Nanoseconds()}
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
	op.Return = time.Since(h.start).Nanoseconds()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil && x.write != "":
		h.ackedWrites++
	case err != nil && x.write == "":
		return
	case err != nil:
		op.Return = math.MaxInt64
	}
	h.ops = append(h.ops, op)
}

// readShared returns the last write to a job, or "" if the job does not exist.
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

// acked returns the number of acknowledged writes.
func (h *history) acked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ackedWrites
}

// waitWrites waits until the given number of further writes is acknowledged.
func (h *history) waitWrites(writes int) {
	h.t.Helper()
	before := h.acked()
	eventually(h.t, strconv.Itoa(writes)+" further writes are acknowledged", func() bool { return h.acked() >= before+writes })
}

// check stops all clients, reads every job once more, and verifies that the history is
// linearizable.
func (h *history) check(c *client.Client) {
	h.t.Helper()
	h.stop()
	h.wg.Wait()
	for n := range historyJobs {
		id := fmt.Sprint("shared-", n)
		eventually(h.t, "the job can be read", func() bool {
			at := time.Since(h.start).Nanoseconds()
			ctx, cancel := context.WithTimeout(h.t.Context(), 5*time.Second)
			defer cancel()
			by, err := readShared(ctx, c, id)
			if err != nil {
				return false
			}
			h.ops = append(h.ops, porcupine.Operation{ClientId: -1, Input: access{job: id}, Output: by, Call: at, Return: time.Since(h.start).Nanoseconds()})
			return true
		})
	}
	switch porcupine.CheckOperationsTimeout(registerModel, h.ops, time.Minute) {
	case porcupine.Illegal:
		h.t.Errorf("history of %d operations is not linearizable", len(h.ops))
	case porcupine.Unknown:
		h.t.Logf("check of %d operations for linearizability timed out after one minute", len(h.ops))
	case porcupine.Ok:
		h.t.Logf("history of %d operations with %d acknowledged writes is linearizable", len(h.ops), h.ackedWrites)
	}
}

// The model rejects a read that returns a value that was overwritten before the read
// began.
func TestHistory_DetectsStaleRead(t *testing.T) {
	t.Parallel()
	h := []porcupine.Operation{
		{ClientId: 0, Input: access{"j", "a"}, Call: 1, Return: 2},
		{ClientId: 0, Input: access{"j", "b"}, Call: 3, Return: 4},
		{ClientId: 1, Input: access{job: "j"}, Output: "a", Call: 5, Return: 6},
	}
	if porcupine.CheckOperations(registerModel, h) {
		t.Error("a stale read is accepted")
	}
	h[2].Output = "b"
	if !porcupine.CheckOperations(registerModel, h) {
		t.Error("a current read is rejected")
	}
	h[1].Return = math.MaxInt64 // the write failed and may not have been applied
	h[2].Output = "a"
	if !porcupine.CheckOperations(registerModel, h) {
		t.Error("a read that does not see a failed write is rejected")
	}
}
