package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
)

func TestSetShedding_OffRunsEveryEvaluationOfAJob(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		b, err := broker.New(broker.Config{Clock: clock.NewVirtual(time.Unix(0, 0))})
		if err != nil {
			t.Fatal(err)
		}
		b.Enable()
		b.SetShedding(on)
		for i := range uint64(5) {
			b.Enqueue(&model.Evaluation{ID: fmt.Sprint("e", i), Namespace: "n", JobID: "j", CreateIndex: i + 1, ModifyIndex: i + 1})
		}
		runs := 0
		for d, ok := b.TryDequeue(nil); ok; d, ok = b.TryDequeue(nil) {
			runs++
			if err := b.Ack(d.Eval.ID, d.Token, 10); err != nil {
				t.Fatal(err)
			}
		}
		shed := len(b.PopCancelable(0))
		if want := map[bool]int{true: 1, false: 5}[on]; runs != want || runs+shed != 5 {
			t.Errorf("shedding %t: %d of 5 ran and %d were shed, want %d to run", on, runs, shed, want)
		}
	}
}
