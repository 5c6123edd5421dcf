package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
)

// Each test is named after a fault of another system and describes it: the failure
// there, and the behavior here.

// Nomad, quirk 5. Over several queues it compared the last element in each heap's
// array rather than its root. With service{90,10} and batch{50} one worker got
// batch50 first, then service90: an urgent evaluation waited for a lesser one
// because their types differ. Here the roots are compared.
func TestNomadQuirk5_PriorityInversionAcrossSchedulerTypes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(
		eval("service90", 90, 1),
		eval("service10", 10, 2),
		with(eval("batch50", 50, 3), func(e *model.Evaluation) { e.Type = model.JobBatch }),
	)
	f.wantOrder(t, "service90 batch50 service10")
}

// Nomad, quirk 6. A system job that found five nodes full blocked once, for the
// first of them. Capacity on the others unblocked nothing until a change of the
// whole class. Here one blocked evaluation waits for every node that it names.
func TestNomadQuirk6_SystemJobBlocksOnlyOncePerGroup(t *testing.T) {
	t.Parallel()
	nodes := []string{"n1", "n2", "n3", "n4", "n5"}
	for _, node := range nodes {
		f := newFixture(t)
		f.blocked.Block(with(eval("sys", 50, 1), func(e *model.Evaluation) {
			e.Type, e.BlockedNodes, e.SnapshotIndex = model.JobSystem, nodes, 10
			e.Classes = map[uint64]bool{1: false}
		}), nil)
		if got := ids(f.blocked.Unblock(1, node, 11, nil)); got != "sys" {
			t.Errorf("room on %s released %q", node, got)
		}
	}
}

// An evaluation that another one replaced is written again before it is cancelled: each
// change of the priority of a binding updates all of its evaluations. It is cancelled once.
func TestBlock_DuplicateIsCancelledOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	block := func(id string, snapshot uint64, priority int32) {
		f.blocked.Block(with(evalOf("web", id, priority, snapshot), func(e *model.Evaluation) { e.SnapshotIndex = snapshot }), nil)
	}
	block("a", 10, 50)
	block("b", 11, 50)
	for priority := range int32(100) {
		block("a", 10, priority)
		block("b", 11, priority)
	}
	if n := f.blocked.Stats().Duplicates; n != 1 {
		t.Errorf("%d evaluations are to be cancelled, want 1", n)
	}
	dups := f.blocked.PopDuplicates(0)
	if got := cancelled(dups); got != "a<-b" || dups[0].Eval.Priority != 99 {
		t.Errorf("cancelled %q, want the newest version of a", got)
	}
	block("a", 10, 7)
	f.blocked.ReturnDuplicates(dups)
	if dups = f.blocked.PopDuplicates(0); len(dups) != 1 || dups[0].Eval.Priority != 7 {
		t.Errorf("after a failed write, %q are to be cancelled, want the newest version of a", cancelled(dups))
	}
}

// Nomad, quirk 7. Of one system job's blocked evaluations on several nodes the rule
// "one per job" dropped all but the last, but left them in the index by node: their
// copies in the state were cancelled, and capacity on their node queued the
// cancelled evaluation. Here they divide the nodes, and a cancelled evaluation is
// removed from every index.
func TestNomadQuirk7_BlockedSystemEvalsOfOneJobCancelEachOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	block := func(id string, snapshot uint64, nodes ...string) {
		f.blocked.Block(with(evalOf("sys", id, 50, snapshot), func(e *model.Evaluation) {
			e.Type, e.BlockedNodes, e.SnapshotIndex = model.JobSystem, nodes, snapshot
		}), nil)
	}
	block("a", 10, "n1")
	block("b", 11, "n2")
	if dups := cancelled(f.blocked.PopDuplicates(0)); dups != "" {
		t.Fatalf("cancelled %s", dups)
	}
	if got := ids(f.blocked.Unblock(1, "n1", 12, nil)); got != "a" {
		t.Errorf("room on n1 released %q, want a", got)
	}
	block("c", 13, "n2", "n3")
	if dups := cancelled(f.blocked.PopDuplicates(0)); dups != "b<-c" {
		t.Errorf("cancelled %q, want b, all of whose nodes c waits for", dups)
	}
	if got := ids(f.blocked.Unblock(1, "n2", 14, nil)); got != "c" {
		t.Errorf("room on n2 released %q, want c and not the cancelled b", got)
	}
}

// Nomad 17278 and 18838. total_blocked of system jobs went below zero: a counter
// beside the data was lowered once more than raised. Here every count is the
// length of what it counts.
func TestNomad17278_NegativeTotalBlocked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	sys := func(id string, snapshot uint64) *model.Evaluation {
		return with(evalOf("sys", id, 50, snapshot), func(e *model.Evaluation) {
			e.Type, e.BlockedNodes, e.SnapshotIndex = model.JobSystem, []string{"n1", "n2"}, snapshot
		})
	}
	for i := range uint64(5) {
		f.blocked.Block(sys(fmt.Sprint("e", i), 10*i), nil)
		f.blocked.Unblock(1, "n1", 10*i+1, nil)
		f.blocked.Unblock(1, "n2", 10*i+2, nil)
		f.blocked.Untrack(model.JobKey{Namespace: "default", ID: "sys"})
		f.blocked.Remove("e0")
		if s := f.blocked.Stats(); s.Total != 0 || s.ByNode != 0 {
			t.Fatalf("round %d: %+v", i, s)
		}
		if s := f.Stats(); s.Types[model.JobSystem].Blocked != 0 {
			t.Fatalf("round %d: %+v", i, s.Types[model.JobSystem])
		}
	}
}

// Nomad 27927 (and 12792). Blocked jobs of equal priority were released in map
// order: the first team starved behind one with a steady flow of jobs. Here the
// oldest goes first, regardless of the index it is in and of the change.
func TestNomad27927_BlockedJobsOfEqualPriorityPickedAtRandom(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, i := range []uint64{7, 3, 9, 1, 8, 2, 6, 4, 5} {
		f.blocked.Block(with(eval(fmt.Sprint("e", i), 50, i), func(e *model.Evaluation) { e.SnapshotIndex = 20 }), nil)
	}
	want := "e1 e2 e3 e4 e5 e6 e7 e8 e9"
	if got := ids(f.blocked.Unblock(1, "n", 21, nil)); got != want {
		t.Errorf("released %q", got)
	}
	f.wantOrder(t, want)
}

// Ours, by Nomad's rule that a change of class releases all evaluations for which
// the class may be feasible: one small task ends, ten thousand blocked evaluations
// wake, find too little capacity, and block again. Here a filter keeps them
// blocked, and is called once for each equivalence class.
func TestUnblock_CapacityForFewUnblocksFew(t *testing.T) {
	t.Parallel()
	asked := 0
	f := newFixture(t, func(c *broker.Config) {
		c.EquivalenceClass = func(ev *model.Evaluation) uint64 { return uint64(ev.Priority) }
	})
	const n = 10_000
	for i := range uint64(n) {
		f.blocked.Block(with(eval(fmt.Sprint("e", i), int32(10+i%5), i+1), func(e *model.Evaluation) { e.SnapshotIndex = n }), nil)
	}
	room := 3
	released := f.blocked.Unblock(1, "n", n+1, screenFunc(func(ev *model.Evaluation, _ string) bool {
		asked++
		if ev.Priority > 12 || room == 0 {
			return false // the urgent ones are too large
		}
		room--
		return true
	}))
	if got, want := ids(released), "e2 e7 e12"; got != want {
		t.Errorf("released %q, want %q", got, want)
	}
	if asked > 10 {
		t.Errorf("asked %d times", asked)
	}
	if s := f.blocked.Stats(); s.Total != n-3 {
		t.Errorf("%d are still blocked", s.Total)
	}
}

type screenFunc func(*model.Evaluation, string) bool

func (f screenFunc) MayPlace(ev *model.Evaluation, node string, _ *any) bool { return f(ev, node) }

func (screenFunc) Excludes(*model.Evaluation, string, *any) bool { return false }

// Nomad 14621. Before it shed anything, a flapping node left each job hundreds
// of pending evaluations, and all were processed. Here a backlog costs a job two
// runs at most, one if the worker's snapshot is new enough.
func TestNomad14621_BacklogOfOneJobIsProcessedInFull(t *testing.T) {
	t.Parallel()
	for _, covers := range []bool{false, true} {
		f := newFixture(t)
		f.Enqueue(evalOf("j", "first", 50, 1))
		d := f.take(t)
		for i := range uint64(1000) {
			f.Enqueue(evalOf("j", fmt.Sprint("e", i), 50, i+2))
		}
		snapshot, runs := uint64(1), 1
		if covers {
			snapshot = 1001
		}
		f.ack(t, d, snapshot)
		for {
			d, ok := f.TryDequeue(nil)
			if !ok {
				break
			}
			runs++
			f.ack(t, d, d.WaitIndex)
		}
		done := 0
		for {
			batch := f.PopCancelable(0)
			if batch == nil {
				break
			}
			done += len(batch)
		}
		if want := map[bool]int{false: 2, true: 1}[covers]; runs != want || runs+done != 1001 {
			t.Errorf("covers %v: %d runs and %d cancelled, want %d runs of 1001", covers, runs, done, want)
		}
	}
}

// Nomad 15858 and 15980. Evaluations stayed "pending" for no visible reason, in a
// delay after a nack that no view showed; operators toggled the broker to release
// them. Here Locate returns the state, its end, and the evaluation that has the
// turn.
func TestNomad15858_LocateShowsWhyAnEvaluationIsStuck(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(evalOf("j", "a", 50, 1))
	f.nack(t, f.take(t))
	f.advance(time.Second)
	f.nack(t, f.take(t))
	got := f.Locate("a")
	want := broker.Location{State: broker.StateBackoff, Until: epoch.Add(21 * time.Second), Attempt: 2}
	if got != want {
		t.Errorf("a is %+v, want %+v", got, want)
	}
	f.Enqueue(evalOf("j", "b", 50, 2), evalOf("j", "c", 50, 3))
	if got := f.Locate("c"); got.State != broker.StatePending || got.PendingBehind != "b" {
		t.Errorf("c is %+v, want pending behind b", got)
	}
}

// Nomad 2772. Waiting evaluations could not be cancelled. Here a copy in a final
// status, as the apply of such a write delivers it, takes one out wherever it
// waits, and its job's next takes the turn.
func TestNomad2772_WaitingEvaluationsCannotBeCancelled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(evalOf("j", "a", 50, 1), evalOf("j", "b", 50, 2),
		with(eval("later", 50, 3), func(e *model.Evaluation) { e.WaitUntil = epoch.Add(time.Hour).UnixNano() }))
	for _, id := range []string{"a", "later"} {
		f.Enqueue(with(eval(id, 50, 9), func(e *model.Evaluation) { e.Status = model.EvalCancelled }))
	}
	if _, ok := f.clock.Next(); ok {
		t.Error("a timer is left for the one that waited for its time")
	}
	f.advance(2 * time.Hour)
	f.wantOrder(t, "b")
}

// Nomad 11638 (which names 11449 and 11450). Pausing the broker threw away its
// content, so during an incident there was nothing to inspect or delete, and
// resuming rebuilt it all. Here a pause holds deliveries and nothing else.
func TestNomad11638_PauseDropsTheQueue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(eval("a", 50, 1), eval("b", 40, 2))
	f.Pause()
	if _, ok := f.TryDequeue(nil); ok {
		t.Fatal("delivered while paused")
	}
	if s := f.Stats(); !s.Paused || s.Types[model.JobService].Ready != 2 {
		t.Errorf("paused broker shows %+v", s)
	}
	f.Remove("a")
	f.Enqueue(eval("c", 60, 3))
	f.Resume()
	f.wantOrder(t, "c b")
}

// Nomad, section 3 of the reference measurements: a hundred preempting placements took longer to
// compute than the nack timeout, which ran on meanwhile; the evaluation was
// delivered twice and the first result thrown away. Here the worker renews.
func TestNomadNackTimeoutRunsWhileComputing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(eval("long", 50, 1))
	d := f.take(t)
	for range 10 {
		f.advance(45 * time.Second)
		if err := f.Renew("long", d.Token); err != nil {
			t.Fatal(err)
		}
	}
	f.ack(t, d, d.WaitIndex)
}

// Ours: an evaluation that was nacked could keep its job's turn through the delay,
// and a newer one that would do the work of both wait up to 40 s for nothing.
// Here the turn passes on.
func TestNackDelayHoldsUpTheJob(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(evalOf("j", "a", 50, 1))
	f.nack(t, f.take(t))
	f.Enqueue(evalOf("j", "b", 50, 2))
	d := f.take(t)
	if d.Eval.ID != "b" {
		t.Fatalf("delivered %s", d.Eval.ID)
	}
	f.ack(t, d, 2)
	if got := cancelled(f.PopCancelable(0)); got != "a<-b" {
		t.Errorf("cancelled %q, want a, which b covered", got)
	}
}

func TestNackDelayOfBindingsDoublesUpToTenTimes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *broker.Config) { c.DeliveryLimit = 10 })
	f.Enqueue(&model.Evaluation{ID: "e", Namespace: "ns", JobID: "b", Type: model.JobBinding, Status: model.EvalPending})
	for _, seconds := range []int{1, 2, 4, 8, 10, 10} {
		d := f.take(t)
		if err := f.Nack(d.Eval.ID, d.Token); err != nil {
			t.Fatal(err)
		}
		f.advance(time.Duration(seconds)*time.Second - 1)
		if _, ready := f.TryDequeue(nil); ready {
			t.Fatalf("it is ready before %d seconds have passed", seconds)
		}
		f.advance(1)
	}
}

// Nomad 16877 and 13933. A failed evaluation of a job that no longer existed was
// followed up for ever, and failed ones piled up in memory. Here the broker
// hands a failed one out once, forgets it, and follows nothing up itself.
func TestNomad16877_FailedEvaluationLoopsForEver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(eval("e", 50, 1))
	for range 3 {
		f.nack(t, f.take(t))
		f.advance(time.Hour)
	}
	if got := ids(f.PopFailed(0)); got != "e" {
		t.Fatalf("failed %q", got)
	}
	f.advance(24 * time.Hour)
	s := f.Stats()
	if got := s.Total(); got != (broker.Counts{}) {
		t.Errorf("still held: %+v", got)
	}
}

// Karmada's lost priority update, first half. Raising the priority of a queued
// binding was ignored: its key was in the queue already. "first pop y prio 5".
func TestKarmadaLostPriorityUpdate_Queued(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(eval("x", 1, 1), eval("y", 5, 2))
	f.Enqueue(with(eval("x", 9, 1), func(e *model.Evaluation) { e.ModifyIndex = 3 }))
	f.wantOrder(t, "x y")
}

// Second half. Raising it while the binding was processed queued the old object
// with the old priority again: "bump while processing: pop x prio 1".
func TestKarmadaLostPriorityUpdate_InProcess(t *testing.T) {
	t.Parallel()
	raised := with(eval("x", 9, 1), func(e *model.Evaluation) { e.ModifyIndex = 3 })
	f := newFixture(t)
	f.Enqueue(eval("x", 1, 1))
	d := f.take(t)
	f.Enqueue(eval("y", 5, 2), raised)
	f.ack(t, d, 2) // has not seen the raise
	f.wantOrder(t, "x y")

	f = newFixture(t)
	f.Enqueue(eval("x", 1, 1))
	d = f.take(t)
	f.Enqueue(eval("y", 5, 2), raised)
	f.nack(t, d)
	f.advance(time.Second)
	if d := f.take(t); d.Eval != raised || d.Attempt != 2 {
		t.Errorf("delivered %s at %d, attempt %d", d.Eval.ID, d.Eval.Priority, d.Attempt)
	}
}

// The same fault with two evaluations of one job: the newer and more urgent one
// waited as "pending" behind the older, at the older's place in the queue.
func TestKarmadaLostPriorityUpdate_NewerEvaluationOfTheJob(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(evalOf("x", "x-old", 1, 1), eval("y", 5, 2), evalOf("x", "x-new", 9, 3))
	f.wantOrder(t, "x-new y")

	f = newFixture(t) // and of one that is itself pending
	f.Enqueue(evalOf("x", "x-old", 1, 1), evalOf("x", "x-new", 1, 2), eval("y", 5, 3))
	f.Enqueue(with(evalOf("x", "x-new", 9, 2), func(e *model.Evaluation) { e.ModifyIndex = 4 }))
	f.wantOrder(t, "x-new y")
}

// The same fault for one that is blocked.
func TestKarmadaLostPriorityUpdate_Blocked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.blocked.Block(with(eval("x", 1, 1), func(e *model.Evaluation) { e.SnapshotIndex = 5 }), nil)
	f.blocked.Block(with(eval("y", 5, 2), func(e *model.Evaluation) { e.SnapshotIndex = 5 }), nil)
	f.blocked.Block(with(eval("x", 9, 1), func(e *model.Evaluation) { e.SnapshotIndex, e.ModifyIndex = 5, 6 }), nil)
	if got := ids(f.blocked.Unblock(1, "n", 7, nil)); got != "x y" {
		t.Errorf("released %q", got)
	}
}

// Karmada rewrote a binding's time stamp on every push, so "first in, first out"
// was by last update: a binding with frequent updates never ran.
func TestKarmadaUpdateCostsThePositionInTheQueue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(eval("x", 5, 1), eval("y", 5, 1))
	f.Enqueue(with(eval("x", 5, 1), func(e *model.Evaluation) { e.ModifyIndex = 9 }))
	f.wantOrder(t, "x y")
}

// Karmada counted the attempts in the object that each update replaced, so an
// update reset the back-off, and a busy spec hammered the scheduler.
func TestKarmadaUpdateResetsTheBackOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(eval("x", 5, 1))
	f.nack(t, f.take(t))
	f.advance(time.Second)
	f.nack(t, f.take(t))
	f.Enqueue(with(eval("x", 7, 1), func(e *model.Evaluation) { e.ModifyIndex = 2 }))
	if _, ok := f.TryDequeue(nil); ok {
		t.Fatal("the update ended the back-off")
	}
	f.advance(20 * time.Second)
	if d := f.take(t); d.Attempt != 3 || d.Eval.Priority != 7 {
		t.Errorf("attempt %d at priority %d", d.Attempt, d.Eval.Priority)
	}
}

// Karmada 6987 and 7231 to 7235. The back-off queue was sorted by priority
// first, so one long back-off hid all that had ended behind it.
func TestKarmada6987_LongBackOffHidesOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(eval("long", 90, 1))
	f.nack(t, f.take(t))
	f.advance(time.Second)
	f.nack(t, f.take(t)) // 20 s
	f.Enqueue(eval("short", 10, 2))
	f.nack(t, f.take(t)) // 1 s
	f.advance(time.Second)
	f.wantOrder(t, "short")
}

// Karmada 7369. No event unblocked an unschedulable binding when capacity became
// free; it waited up to five minutes for a sweep. Here free capacity unblocks at
// once, and capacity freed during the attempt is not missed.
func TestKarmada7369_FreeCapacityUnblocksNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(eval("x", 5, 1))
	d := f.take(t)
	f.blocked.Unblock(1, "n", 8, nil) // the worker looks at 7
	blocked := with(d.Eval, func(e *model.Evaluation) {
		e.Status, e.SnapshotIndex, e.ModifyIndex = model.EvalBlocked, 7, 9
	})
	if got := f.blocked.Block(blocked, nil); got != broker.BlockReleased {
		t.Errorf("the evaluation was %v", got)
	}
	f.ack(t, d, 7)
	if d := f.take(t); d.Eval != blocked || d.WaitIndex < 8 {
		t.Errorf("delivered %s for index %d", d.Eval.ID, d.WaitIndex)
	}
}

// Ours: if changes are newer than the acked snapshot, and their evaluations were
// already cancelled in favor of this one, the ack would lose those changes.
func TestAck_OldSnapshotLosesCancelledChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Enqueue(evalOf("j", "a", 50, 1))
	d := f.take(t)
	f.Enqueue(evalOf("j", "urgent", 90, 2), evalOf("j", "newest", 50, 3))
	f.ack(t, d, 1)
	d = f.take(t)
	if d.Eval.ID != "urgent" || d.WaitIndex != 3 {
		t.Fatalf("delivered %s for index %d", d.Eval.ID, d.WaitIndex)
	}
	if err := f.Ack("urgent", d.Token, 2); !errors.Is(err, broker.ErrSnapshotTooOld) {
		t.Errorf("ack on 2, without what newest was made for: %v", err)
	}
	f.ack(t, d, 3)
}

// Classes are created and deleted with the attributes of nodes. Numbers of classes
// that no record rules out are dropped, and the others remain valid.
func TestBlocked_ManyClassesComeAndGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	block := func(id string, classes map[uint64]bool) {
		ev := &model.Evaluation{
			ID: id, Namespace: "default", JobID: id, Status: model.EvalBlocked, SnapshotIndex: 10, Classes: classes,
		}
		if got := f.blocked.Block(ev, nil); got != broker.BlockTracked {
			t.Fatalf("%s is %v", id, got)
		}
	}
	block("first", map[uint64]bool{1: false, 2: true})
	for i := range uint64(20_000) {
		id := fmt.Sprintf("e%d", i)
		block(id, map[uint64]bool{3: false, 100 + i: false})
		f.blocked.Remove(id)
	}
	block("last", map[uint64]bool{1: true, 2: false})
	for class, want := range []string{1: "last", 2: "first"} {
		if want == "" {
			continue
		}
		if got := f.blocked.Unblock(uint64(class), "", 11, nil); len(got) != 1 || got[0].ID != want {
			t.Errorf("room in class %d releases %v, want %s", class, got, want)
		}
	}
}
