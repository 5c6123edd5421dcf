package jobtrace

import (
	"math"
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

const (
	gfsNodes = "node_info_df.csv"
	gfsJobs  = "job_info_df.csv"
)

// gfsBands maps the job types of the trace to priorities.
func gfsBands() map[string]int32 { return map[string]int32{"HP": 80, "Spot": 20} }

// GFS imports Alibaba's trace of jobs on spot GPUs. See the package documentation.
func GFS(opts build.Options, src build.Source) (*scenario.File, *build.Report, error) {
	t, err := newTrace("gfs", "spot GPU trace of 2026 (GFS)", "gfs", opts, gfsBands())
	if err != nil {
		return nil, nil, err
	}
	nodes, err := src.Must(gfsNodes)
	if err != nil {
		return nil, t.Report, err
	}
	jobs, err := src.Must(gfsJobs)
	if err != nil {
		return nil, t.Report, err
	}
	src.Expect(nodes, jobs)
	if err := t.gfsNodes(src, nodes); err != nil {
		return nil, t.Report, err
	}
	if err := t.gfsJobs(src, jobs); err != nil {
		return nil, t.Report, err
	}
	return t.finish()
}

func (t *trace) gfsNodes(src build.Source, file string) error {
	table, err := t.OpenTable(src, file)
	if err != nil {
		return err
	}
	defer table.Close()
	name, gpu, gpus, cpu := table.Column("node_name"), table.Column("gpu_model"), table.Column("gpu_capacity_num"), table.Column("cpu_num")
	for table.Next() {
		n := gpuNode(t.Name("node-"+table.Text(name)), table.Small(gpus, perNode), table.Text(gpu))
		n.Capacity["cpu"] = table.Scaled(cpu, milli)
		if !t.Node(n) {
			table.Fail("node %q is listed twice", table.Text(name))
		}
	}
	return table.Err()
}

func (t *trace) gfsJobs(src build.Source, file string) error {
	table, err := t.OpenTable(src, file)
	if err != nil {
		return err
	}
	defer table.Close()
	name, org, gpuModel := table.Column("job_name"), table.Column("organization"), table.Column("gpu_model")
	cpu, gpu, workers := table.Column("cpu_request"), table.Column("gpu_request"), table.Column("worker_num")
	submit, duration, kind := table.Column("submit_time"), table.Column("duration"), table.Column("job_type")
	for table.Next() {
		at, given := table.Seconds(submit)
		if !given {
			table.Invalid(submit, "seconds: a job must have been submitted")
		}
		run, ended := table.Seconds(duration)
		if run > maxRun*int64(time.Second) {
			table.Invalid(duration, "at most "+strconv.Itoa(maxRun)+" seconds")
		}
		r := record{
			id: t.Name("j" + table.Text(name)), namespace: t.Name("org-" + table.Text(org)), words: []string{table.Text(kind)},
			submitted: time.Unix(0, at), run: run / int64(time.Second), nodes: table.Small(workers, maxNodes), cpu: table.Scaled(cpu, milli),
		}
		if !ended {
			r.state = running
		}
		// A share of a GPU is a whole one, as GPUs are devices.
		shares := table.Scaled(gpu, milli)
		if shares > perNode*milli {
			table.Invalid(gpu, "a number of GPUs, 0 to "+strconv.Itoa(perNode))
		}
		each := int(math.Ceil(float64(shares) / milli))
		if shares%milli != 0 && !table.Failed() {
			t.Report.Note(r.nodes, "instances that share a GPU", "they request a whole GPU")
		}
		if r.nodes == 0 && !table.Failed() {
			table.Invalid(workers, "an integer, 1 or more")
		}
		if each > 0 {
			r.gpuModel, r.gpus = table.Text(gpuModel), each*r.nodes
		}
		if !table.Failed() && !t.add(r) {
			table.Fail("job %q is listed twice", table.Text(name))
		}
	}
	return table.Err()
}
