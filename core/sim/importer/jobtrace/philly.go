package jobtrace

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/internal/plainjson"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

const (
	phillyJobs     = "cluster_job_log"
	phillyMachines = "cluster_machine_list"
)

// phillyJob is a record of cluster_job_log.
type phillyJob struct {
	ID        string          `json:"jobid"`
	VC        string          `json:"vc"`
	Submitted string          `json:"submitted_time"`
	Attempts  []phillyAttempt `json:"attempts"`
}

type phillyAttempt struct {
	Start  *string `json:"start_time"`
	End    *string `json:"end_time"`
	Detail []struct {
		IP   string   `json:"ip"`
		GPUs []string `json:"gpus"`
	} `json:"detail"`
}

// Philly imports the trace of the Philly clusters. See the package documentation.
func Philly(opts build.Options, src build.Source) (*scenario.File, *build.Report, error) {
	t, err := newTrace("philly", "Philly trace of 2017", "philly", opts, nil)
	if err != nil {
		return nil, nil, err
	}
	t.noBands = "jobs; the trace has no priorities"
	machines, err := src.Must(phillyMachines)
	if err != nil {
		return nil, t.Report, err
	}
	jobs, err := src.Must(phillyJobs)
	if err != nil {
		return nil, t.Report, err
	}
	src.Expect(machines, jobs)
	if err := t.phillyMachines(src, machines); err != nil {
		return nil, t.Report, err
	}
	if err := t.phillyJobs(src, jobs); err != nil {
		return nil, t.Report, err
	}
	return t.finish()
}

func (t *trace) phillyMachines(src build.Source, file string) error {
	table, err := t.OpenTable(src, file)
	if err != nil {
		return err
	}
	defer table.Close()
	id, gpus, memory := table.Column("machineId"), table.Column("number of GPUs"), table.Column("single GPU mem")
	for table.Next() {
		n := gpuNode(t.Name(strings.TrimSpace(table.Text(id))), table.Small(gpus, perNode), "gpu-"+strings.TrimSpace(table.Text(memory)))
		if !t.Node(n) {
			table.Fail("machine %q is listed twice", n.ID)
		}
	}
	return table.Err()
}

// phillyJobs reads the array of jobs one by one.
func (t *trace) phillyJobs(src build.Source, file string) error {
	t.Report.Files = append(t.Report.Files, file)
	list, err := src.Objects(file)
	if err != nil {
		return err
	}
	defer list.Close()
	for list.Next() {
		var j phillyJob
		if err := plainjson.Unmarshal(list.Object, &j); err != nil {
			list.Fail("%w", err)
			continue
		}
		r, err := t.phillyRecord(&j)
		if err != nil {
			list.Fail("job %.80q: %w", j.ID, err)
			continue
		}
		if !t.add(r) {
			list.Fail("job %q is listed twice", j.ID)
		}
	}
	return list.Err()
}

// phillyRecord converts a job. The size is that of the last attempt with one, and the run is
// the sum of the attempts, because each of them occupied its GPUs.
func (t *trace) phillyRecord(j *phillyJob) (record, error) {
	at, ok := build.ParseTime(j.Submitted)
	switch {
	case j.ID == "":
		return record{}, errors.New("jobid is required")
	case !ok:
		return record{}, fmt.Errorf("submitted_time is %.40q; expected a time such as 2017-10-07 01:11:39", j.Submitted)
	}
	r := record{id: t.Name(j.ID), namespace: t.Name(j.VC), words: []string{j.VC}, submitted: at, nodes: 1, state: neverRan}
	var unknown int
	for i := range j.Attempts {
		a := &j.Attempts[i]
		if len(a.Detail) > 0 {
			r.hosts = r.hosts[:0]
			for _, d := range a.Detail {
				if len(d.GPUs) > perNode {
					return record{}, fmt.Errorf("attempt %d has %d GPUs on %.40s; expected at most %d", i, len(d.GPUs), d.IP, perNode)
				}
				r.hosts = append(r.hosts, len(d.GPUs))
			}
		}
		start, hasStart, err := phillyTime(a.Start)
		if err != nil {
			return record{}, fmt.Errorf("start_time of attempt %d: %w", i, err)
		}
		end, hasEnd, err := phillyTime(a.End)
		if err != nil {
			return record{}, fmt.Errorf("end_time of attempt %d: %w", i, err)
		}
		var one record
		one.setRun(start, hasStart, end, hasEnd)
		last := i == len(j.Attempts)-1
		switch {
		case one.state == ran:
			r.run, r.state = r.run+one.run, ran
		case one.state == running && last:
			r.state = running
		default:
			unknown++
		}
	}
	if len(j.Attempts) > 1 {
		t.Report.Note(1, "jobs with several attempts", "one run of their total time")
	}
	t.Report.Note(unknown, "attempts without a valid start and end", "not part of the run")
	if len(r.hosts) == 0 && r.state != neverRan {
		r.state = neverRan
		t.Report.Note(1, "jobs that ran on unknown machines", "treated as jobs that never ran")
	}
	if r.run > maxRun {
		return record{}, fmt.Errorf("it ran for %d s; expected at most %d", r.run, int64(maxRun))
	}
	return r, nil
}

// phillyTime parses a time of an attempt, which may be absent.
func phillyTime(text *string) (at time.Time, given bool, err error) {
	if text == nil || *text == "" || *text == "None" {
		return time.Time{}, false, nil
	}
	at, ok := build.ParseTime(*text)
	if !ok {
		return time.Time{}, false, fmt.Errorf("invalid time %.40q", *text)
	}
	return at, true, nil
}
