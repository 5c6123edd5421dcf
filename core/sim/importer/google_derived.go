package importer

import (
	"strconv"
	"time"
)

// maxPriority is the highest priority in the trace.
const maxPriority = 11

// readMachines reads machines.csv, the machines at time 0.
func (g *google) readMachines(src Source) error {
	t, err := g.openTable(src, src.find("machines.csv"))
	if err != nil {
		return err
	}
	defer t.Close()
	id, cpu, mem, platform := t.column("machine_id"), t.column("cpu"), t.column("mem"), t.column("platform")
	for t.next() {
		c, known := t.fraction(cpu)
		m, _ := t.fraction(mem)
		g.machine(t, t.id(id), c, m, known, t.text(platform))
	}
	if t.err != nil {
		return t.err
	}
	return g.shrink()
}

// taskColumns holds the positions of the columns of tasks.csv that are read.
type taskColumns struct {
	job, index, priority, class, submit, sched, end, kind, run, cpu, mem, disk, apart int
}

// readTasks reads tasks.csv.
func (g *google) readTasks(src Source) error {
	t, err := g.openTable(src, src.find("tasks.csv"))
	if err != nil {
		return err
	}
	defer t.Close()
	c := taskColumns{
		job: t.column("job_id"), index: t.column("task_index"), priority: t.column("priority"),
		class: t.column("sched_class"), submit: t.column("submit_s"), sched: t.column("first_sched_s"),
		end: t.column("end_s"), kind: t.column("end_kind"), run: t.column("run_s"),
		cpu: t.column("cpu"), mem: t.column("mem"), disk: t.column("disk"), apart: t.column("diff_machine"),
	}
	seen := make(map[taskKey]bool)
	for t.next() {
		task := g.row(t, &c)
		key := taskKey{task.job, task.index}
		if seen[key] {
			t.fail("task %d of job %d is listed twice", task.index, task.job)
		}
		seen[key] = true
		g.tasks = append(g.tasks, task)
	}
	g.report.TasksRead = len(g.tasks)
	return t.err
}

// row returns the task of the current row.
func (g *google) row(t *table, c *taskColumns) googleTask {
	task := googleTask{
		job: t.id(c.job), index: t.id(c.index), priority: t.small(c.priority, maxPriority),
		class: t.small(c.class, 3), separate: parseSeparation(t, c.apart),
	}
	kind, known := taskKinds[t.text(c.kind)]
	if !known {
		t.invalid(c.kind, "RUNNING, PENDING, FINISH, KILL or FAIL")
	}
	task.kind = kind
	submit, given := t.seconds(c.submit)
	if !given {
		t.invalid(c.submit, "seconds: a task must have been submitted")
	}
	task.submit = submit
	task.end = optional(t.seconds(c.end))
	task.run = optional(t.seconds(c.run))
	if task.kind >= taskFinish && task.end < submit {
		t.invalid(c.end, "a time after submit_s: the task has ended")
	}
	sched, _ := t.seconds(c.sched)
	// The task ran until the window ended. Both terms of the sum are rounded to
	// milliseconds, so it may be too large by one.
	g.window = max(g.window, submit, task.end, task.run, sched+task.run-int64(time.Millisecond))
	task.cpu, task.mem = hidden(t.fraction(c.cpu)), hidden(t.fraction(c.mem))
	disk, _ := t.fraction(c.disk)
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

func parseSeparation(t *table, col int) machineSeparation {
	switch t.text(col) {
	case "":
		return separationUnknown
	case "0":
		return separationOff
	case "1":
		return separationOn
	}
	t.invalid(col, "0, 1 or empty")
	return separationUnknown
}

// taskKey identifies a task.
type taskKey struct{ job, index uint64 }

func (k taskKey) String() string {
	return strconv.FormatUint(k.job, 10) + "/" + strconv.FormatUint(k.index, 10)
}
