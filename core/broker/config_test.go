package broker_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
)

func TestConfig_EveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	_, err := broker.New(broker.Config{NackTimeout: -1, DeliveryLimit: -1, ReaperBatch: -1, UnblockRetention: -1})
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("problems: %v", err)
	}
	if err := broker.Defaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestConfig_NegativeDelayIsNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *broker.Config) { c.FirstNackDelay, c.NackDelay = -1, -1 })
	f.Enqueue(eval("a", 50, 1))
	f.nack(t, f.take(t))
	f.nack(t, f.take(t))
	f.nack(t, f.take(t))
	if got := ids(f.PopFailed(0)); got != "a" {
		t.Errorf("failed %q", got)
	}
}

func TestToken_RoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []broker.Token{1, 0xdeadbeef, 1<<64 - 1} {
		if got, err := broker.ParseToken(want.String()); err != nil || got != want {
			t.Errorf("%v came back as %v, %v", want, got, err)
		}
	}
	if _, err := broker.ParseToken("xyz"); err == nil {
		t.Error("parsed rubbish")
	}
}

// Neither hash seeds nor map order reach a result: the same calls give the same
// answers, tokens and reaper's lists included.
func TestSameCallsSameAnswers(t *testing.T) {
	t.Parallel()
	first := playRandomly(t)
	for range 3 {
		if again := playRandomly(t); again != first {
			t.Fatal("two runs differ")
		}
	}
}

func playRandomly(t *testing.T) string {
	f := newFixture(t, func(c *broker.Config) {
		c.EquivalenceClass = func(ev *model.Evaluation) uint64 { return uint64(ev.Priority) }
	})
	r := rand.New(rand.NewPCG(3, 4))
	var out strings.Builder
	for i := range uint64(5000) {
		ev := evalOf(fmt.Sprint("j", r.IntN(40)), fmt.Sprint("e", i), int32(r.IntN(6)), i+1)
		ev.SnapshotIndex = i - min(i, uint64(r.IntN(3)))
		switch r.IntN(8) {
		case 0, 1, 2:
			f.Enqueue(ev)
		case 3:
			fmt.Fprintln(&out, ev.ID, f.blocked.Block(ev, nil))
		case 4:
			fmt.Fprintln(&out, ids(f.blocked.Unblock(uint64(r.IntN(3)), fmt.Sprint("n", r.IntN(9)), i+1, nil)))
		case 5:
			f.advance(time.Duration(r.IntN(4000)) * time.Millisecond)
			fmt.Fprintln(&out, cancelled(f.PopCancelable(3)), ids(f.PopFailed(3)), cancelled(f.blocked.PopDuplicates(3)))
		default:
			if d, ok := f.TryDequeue(nil); ok {
				fmt.Fprintln(&out, d.Eval.ID, d.Token, d.WaitIndex, d.Attempt)
				if r.IntN(3) > 0 {
					fmt.Fprintln(&out, f.Ack(d.Eval.ID, d.Token, i+1))
				}
			}
		}
	}
	fmt.Fprintf(&out, "%+v %+v", f.Stats(), f.blocked.Stats())
	return out.String()
}
