package jobtrace

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

const (
	heliosGPUs = "cluster_gpu_number.csv"
	heliosJobs = "cluster_log.csv"

	heliosPerNode = 8 // GPUs of each node of the four clusters
)

// Helios imports the log of one cluster of the Helios trace. See the package documentation.
func Helios(opts build.Options, src build.Source) (*scenario.File, *build.Report, error) {
	t, err := newTrace("helios", "Helios trace of 2020", "helios", opts, nil)
	if err != nil {
		return nil, nil, err
	}
	t.noBands = "jobs; the trace has no priorities"
	gpus, err := src.Must(heliosGPUs)
	if err != nil {
		return nil, t.Report, err
	}
	jobs, err := src.Must(heliosJobs)
	if err != nil {
		return nil, t.Report, err
	}
	src.Expect(gpus, jobs)
	total, err := t.heliosGPUs(src, gpus)
	if err != nil {
		return nil, t.Report, err
	}
	if err := t.heliosJobs(src, jobs); err != nil {
		return nil, t.Report, err
	}
	t.heliosNodes(total)
	return t.finish()
}

// heliosGPUs returns the largest number of GPUs that the cluster had on a day.
func (t *trace) heliosGPUs(src build.Source, file string) (int, error) {
	table, err := t.OpenTable(src, file)
	if err != nil {
		return 0, err
	}
	defer table.Close()
	column, most := table.Column("total"), 0
	for table.Next() {
		n := table.Small(column, maxGPUs)
		if most != 0 && n != most {
			t.Report.Note(1, "days on which the number of GPUs differs from that of the day before or the largest so far", "the largest number applies to the whole trace")
		}
		most = max(most, n)
	}
	if err := table.Err(); err != nil {
		return 0, err
	}
	if most < heliosPerNode {
		return 0, &build.FileError{File: file, Err: fmt.Errorf("the cluster has %d GPUs; expected at least the %d of one node", most, heliosPerNode)}
	}
	return most, nil
}

// heliosNodes adds equal nodes. The trace does not contain their CPUs: they get those of the
// largest request.
func (t *trace) heliosNodes(gpus int) {
	var cpu int64
	for i := range t.records {
		cpu = max(cpu, t.records[i].cpu)
	}
	nodes := gpus / heliosPerNode
	t.Report.Note(nodes, "nodes, whose CPUs the trace does not contain", fmt.Sprintf("%d cores, the largest request of a job per node", (cpu+milli-1)/milli))
	t.Report.Note(gpus%heliosPerNode, "GPUs that do not fill a node of 8", "left out")
	for i := range nodes {
		n := gpuNode("node-"+strconv.Itoa(i), heliosPerNode, "gpu")
		n.Capacity["cpu"] = cpu
		t.Node(n)
	}
}

func (t *trace) heliosJobs(src build.Source, file string) error {
	table, err := t.OpenTable(src, file)
	if err != nil {
		return err
	}
	defer table.Close()
	id, vc, gpu, cpu, nodes := table.Column("job_id"), table.Column("vc"), table.Column("gpu_num"), table.Column("cpu_num"), table.Column("node_num")
	submit, start, end := table.Column("submit_time"), table.Column("start_time"), table.Column("end_time")
	for table.Next() {
		at, given := table.Time(submit)
		if !given {
			table.Invalid(submit, "a time: a job must have been submitted")
		}
		r := record{
			id: t.Name("j" + table.Text(id)), namespace: t.Name(table.Text(vc)), words: []string{table.Text(vc)},
			submitted: at, nodes: max(1, table.Small(nodes, maxNodes)), gpus: table.Small(gpu, maxGPUs),
		}
		r.cpu = perInstance(int64(table.Small(cpu, maxCPU))*milli, r.nodes)
		started, hasStart := table.Time(start, noTimes...)
		ended, hasEnd := table.Time(end, noTimes...)
		r.setRun(started, hasStart, ended, hasEnd)
		if !table.Failed() && !t.add(r) {
			table.Fail("job %s is listed twice", table.Text(id))
		}
	}
	if table.Err() == nil && len(t.records) == 0 {
		return &build.FileError{File: file, Err: errors.New("no jobs")}
	}
	return table.Err()
}

// noTimes are the words for a time that does not exist.
var noTimes = []string{"None", "NaN", "nan", "null", "NULL", "Unknown", "N/A"}
