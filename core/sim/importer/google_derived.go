package importer

import (
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
)

// maxPriority is the highest priority in the trace.
const maxPriority = 11

// readMachines reads machines.csv, the machines at time 0.
func (g *google) readMachines(src Source) error {
	t, err := g.OpenTable(src, src.Find("machines.csv"))
	if err != nil {
		return err
	}
	defer t.Close()
	id, cpu, mem, platform := t.Column("machine_id"), t.Column("cpu"), t.Column("mem"), t.Column("platform")
	for t.Next() {
		c, known := t.Fraction(cpu)
		m, _ := t.Fraction(mem)
		g.machine(t, t.ID(id), c, m, known, t.Text(platform))
	}
	if t.Err() != nil {
		return t.Err()
	}
	return g.Shrink()
}

// taskColumns holds the positions of the columns of tasks.csv that are read.
type taskColumns struct {
	job, index, priority, class, submit, sched, end, kind, run, cpu, mem, disk, apart int
}

// readTasks reads tasks.csv.
func (g *google) readTasks(src Source) error {
	t, err := g.OpenTable(src, src.Find("tasks.csv"))
	if err != nil {
		return err
	}
	defer t.Close()
	c := taskColumns{
		job: t.Column("job_id"), index: t.Column("task_index"), priority: t.Column("priority"),
		class: t.Column("sched_class"), submit: t.Column("submit_s"), sched: t.Column("first_sched_s"),
		end: t.Column("end_s"), kind: t.Column("end_kind"), run: t.Column("run_s"),
		cpu: t.Column("cpu"), mem: t.Column("mem"), disk: t.Column("disk"), apart: t.Column("diff_machine"),
	}
	seen := make(map[taskKey]bool)
	for t.Next() {
		task := g.row(t, &c)
		key := taskKey{task.job, task.index}
		if seen[key] {
			t.Fail("task %d of job %d is listed twice", task.index, task.job)
		}
		seen[key] = true
		g.tasks = append(g.tasks, task)
	}
	g.Report.TasksRead = len(g.tasks)
	return t.Err()
}

// row returns the task of the current row.
func (g *google) row(t *build.Table, c *taskColumns) googleTask {
	task := googleTask{
		job: t.ID(c.job), index: t.ID(c.index), priority: t.Small(c.priority, maxPriority),
		class: t.Small(c.class, 3), separate: parseSeparation(t, c.apart),
	}
	kind, known := taskKinds[t.Text(c.kind)]
	if !known {
		t.Invalid(c.kind, "RUNNING, PENDING, FINISH, KILL or FAIL")
	}
	task.kind = kind
	submit, given := t.Seconds(c.submit)
	if !given {
		t.Invalid(c.submit, "seconds: a task must have been submitted")
	}
	task.submit = submit
	task.end = optional(t.Seconds(c.end))
	task.run = optional(t.Seconds(c.run))
	if task.kind >= taskFinish && task.end < submit {
		t.Invalid(c.end, "a time after submit_s: the task has ended")
	}
	sched, _ := t.Seconds(c.sched)
	// The task ran until the window ended. Both terms of the sum are rounded to
	// milliseconds, so it may be too large by one.
	g.window = max(g.window, submit, task.end, task.run, sched+task.run-int64(time.Millisecond))
	task.cpu, task.mem = hidden(t.Fraction(c.cpu)), hidden(t.Fraction(c.mem))
	disk, _ := t.Fraction(c.disk)
	task.disk = disk > 0
	return task
}

// optional returns ns, or -1 if the field is empty.
func optional(ns int64, given bool) int64 {
	if !given {
		return -1
	}
	return ns
}

// hidden returns f, or -1 if the field is empty.
func hidden(f float64, given bool) float64 {
	if !given {
		return -1
	}
	return f
}

func parseSeparation(t *build.Table, col int) machineSeparation {
	switch t.Text(col) {
	case "":
		return separationUnknown
	case "0":
		return separationOff
	case "1":
		return separationOn
	}
	t.Invalid(col, "0, 1 or empty")
	return separationUnknown
}

// taskKey identifies a task.
type taskKey struct{ job, index uint64 }

func (k taskKey) String() string {
	return strconv.FormatUint(k.job, 10) + "/" + strconv.FormatUint(k.index, 10)
}
