package broker_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fixture is a broker in virtual time, with its blocked evaluations.
type fixture struct {
	*broker.Broker
	blocked *broker.Blocked
	clock   *clock.Virtual
}

func newFixture(t testing.TB, change ...func(*broker.Config)) *fixture {
	t.Helper()
	v := clock.NewVirtual(epoch)
	cfg := broker.Config{Clock: v, Rand: rand.New(rand.NewPCG(7, 7))}
	for _, c := range change {
		c(&cfg)
	}
	b, err := broker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{b, broker.NewBlocked(b), v}
	b.Enable()
	return f
}

func (f *fixture) advance(d time.Duration) { f.clock.AdvanceTo(f.clock.Now().Add(d)) }

// take is the next delivery; there must be one.
func (f *fixture) take(t tb) broker.Delivery {
	t.Helper()
	d, ok := f.TryDequeue(nil)
	if !ok {
		t.Fatalf("nothing is ready: %+v", f.Stats())
	}
	return d
}

func (f *fixture) ack(t tb, d broker.Delivery, snapshot uint64) {
	t.Helper()
	if err := f.Ack(d.Eval.ID, d.Token, snapshot); err != nil {
		t.Fatalf("ack %s: %v", d.Eval.ID, err)
	}
}

func (f *fixture) nack(t tb, d broker.Delivery) {
	t.Helper()
	if err := f.Nack(d.Eval.ID, d.Token); err != nil {
		t.Fatalf("nack %s: %v", d.Eval.ID, err)
	}
}

// order delivers and acks until nothing is ready.
func (f *fixture) order(t testing.TB) string {
	t.Helper()
	var ids []string
	for {
		d, ok := f.TryDequeue(nil)
		if !ok {
			return strings.Join(ids, " ")
		}
		ids = append(ids, d.Eval.ID)
		f.ack(t, d, d.WaitIndex)
	}
}

func (f *fixture) wantOrder(t testing.TB, want string) {
	t.Helper()
	if got := f.order(t); got != want {
		t.Errorf("order is %q, want %q", got, want)
	}
}

// eval is a service evaluation of a job of its own.
func eval(id string, priority int32, index uint64) *model.Evaluation {
	return &model.Evaluation{
		ID: id, Namespace: "default", JobID: "job-" + id, Priority: priority,
		CreateIndex: index, ModifyIndex: index,
	}
}

func evalOf(job, id string, priority int32, index uint64) *model.Evaluation {
	ev := eval(id, priority, index)
	ev.JobID = job
	return ev
}

func with(ev *model.Evaluation, change func(*model.Evaluation)) *model.Evaluation {
	c := *ev
	change(&c)
	return &c
}

func ids(evals []*model.Evaluation) string {
	s := make([]string, len(evals))
	for i, ev := range evals {
		s[i] = ev.ID
	}
	return strings.Join(s, " ")
}

func cancelled(cs []*broker.Cancellation) string {
	s := make([]string, len(cs))
	for i, c := range cs {
		s[i] = fmt.Sprintf("%s<-%s", c.Eval.ID, c.SupersededBy)
	}
	return strings.Join(s, " ")
}

// tb holds the methods that testing.TB and rapid.T share.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}
