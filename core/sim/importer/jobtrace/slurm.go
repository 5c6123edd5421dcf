package jobtrace

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// slurmTimes are the words of sacct for a time that does not exist.
var slurmTimes = []string{"Unknown", "None", "N/A", "0"}

// partitionAttribute is the attribute of the nodes of a partition.
func partitionAttribute(name string) string { return "partition." + build.CleanName(name) }

// Slurm imports a dump of sacct. See the package documentation.
func Slurm(opts build.Options, src build.Source) (*scenario.File, *build.Report, error) {
	file, err := slurmFile(src)
	if err != nil {
		return nil, nil, err
	}
	t, err := newTrace("slurm", "Slurm accounting "+build.Stem(file, ".txt"), build.Stem(file, ".txt"), opts, nil)
	if err != nil {
		return nil, nil, err
	}
	s := slurm{trace: t, used: map[string]*usage{}, partitions: map[string]bool{}, runs: map[string]int{}}
	nodes := src.Find(slurmNodes)
	src.Expect(nodes, file)
	if nodes != "" {
		if err := s.readNodes(src, nodes); err != nil {
			return nil, t.Report, err
		}
	}
	if err := s.readJobs(src, file); err != nil {
		return nil, t.Report, err
	}
	if nodes == "" {
		if err := s.nodesFromUse(file); err != nil {
			return nil, t.Report, err
		}
		s.used = nil
	}
	s.dropUnknownPartitions()
	return s.finish()
}

// slurmFile returns the named dump, or the only one of the folder.
func slurmFile(src build.Source) (string, error) {
	if src.File != "" {
		return src.File, nil
	}
	files := src.Match("*.txt", "*.psv", "*.csv")
	files = slices.DeleteFunc(files, func(f string) bool { return build.Stem(f, "") == slurmNodes })
	switch len(files) {
	case 0:
		return "", fmt.Errorf("no dump of sacct in this folder: expected a .txt, .psv or .csv file (found: %s)", src.Listing())
	case 1:
		return files[0], nil
	}
	return "", fmt.Errorf("several files (%s); pass one of them", strings.Join(files, ", "))
}

// slurm is one import of a dump of sacct.
type slurm struct {
	*trace
	used       map[string]*usage // use of nodes by the jobs, by name; only without a file of nodes
	partitions map[string]bool   // partitions of the nodes
	runs       map[string]int    // last number of a run of a job that was listed again
	hasNodes   bool
}

// slurmColumns holds the positions of columns; -1 if sacct did not print the column.
type slurmColumns struct {
	id, account, partition, qos, submit, start, end, elapsed, state int
	nodes, cpus, memory, tres, nodeList                             int
}

func (s *slurm) readJobs(src build.Source, file string) error {
	table, err := s.OpenSeparated(src, file, "|")
	if err != nil {
		return err
	}
	defer table.Close()
	c := slurmColumns{
		id: table.Optional("JobID", "JobIDRaw"), account: table.Optional("Account"), partition: table.Optional("Partition"), qos: table.Optional("QOS"),
		submit: table.Column("Submit"), start: table.Optional("Start"), end: table.Optional("End"), elapsed: table.Optional("ElapsedRaw", "Elapsed"),
		state: table.Column("State"), nodes: table.Optional("NNodes", "AllocNodes", "ReqNodes"), cpus: table.Optional("NCPUS", "AllocCPUS", "ReqCPUS"),
		memory: table.Optional("ReqMem"), tres: table.Optional("ReqTRES", "AllocTRES"), nodeList: table.Optional("NodeList"),
	}
	if c.id < 0 {
		c.id = table.Column("JobID")
	}
	if c.start < 0 && c.elapsed < 0 {
		table.Column("Start")
	}
	if c.cpus < 0 && c.tres < 0 {
		table.Column("NCPUS")
	}
	for table.Next() {
		s.row(table, &c)
	}
	if table.Err() == nil && len(s.records) == 0 {
		return &build.FileError{File: file, Err: errors.New("no jobs: create the dump with `sacct --parsable2 --allusers --allocations --format=…`")}
	}
	return table.Err()
}

// row reads one row.
func (s *slurm) row(t *build.Table, c *slurmColumns) {
	id, count, step, err := slurmID(t.Text(c.id))
	switch {
	case err != nil:
		t.Fail("%s: %w", t.Text(c.id), err)
		return
	case step:
		s.Report.Note(1, "job steps", "part of their jobs; `sacct --allocations` omits them")
		return
	}
	at, given := t.Time(c.submit, slurmTimes...)
	if !given {
		t.Invalid(c.submit, "a time: a job must have been submitted")
		return
	}
	r := record{submitted: at, namespace: s.Name(t.Text(c.account)), words: []string{t.Text(c.partition), t.Text(c.qos)}, partition: t.Text(c.partition)}
	if t.Text(c.account) == "" {
		r.namespace = ""
	}
	if i := strings.IndexByte(r.partition, ','); i >= 0 {
		s.Report.Note(1, "jobs that were submitted to several partitions", "the first one applies")
		r.partition = r.partition[:i]
	}
	s.size(t, c, &r)
	s.run(t, c, &r)
	if t.Failed() {
		return
	}
	if r.nodes == 0 {
		r.nodes = 1
	}
	if c.nodeList >= 0 && !s.hasNodes && r.state != neverRan {
		s.use(t, c, &r)
	}
	if count > 1 {
		s.Report.Note(count, "pending elements of job arrays", "one job each")
	}
	for i := range count {
		one := r
		if one.id = id; count > 1 {
			one.id = id + "-" + strconv.Itoa(i)
		}
		for base, again := one.id, false; !s.add(one); again = true {
			if !again {
				s.Report.Note(1, "jobs that were listed again because they were requeued", "a job each, with the number of the run")
			}
			n := max(2, s.runs[base]+1)
			s.runs[base] = n
			one.id = base + "-run" + strconv.Itoa(n)
		}
	}
}

// size reads the number of nodes, CPUs, memory and GPUs. Requested TRES are preferred:
// ReqMem states a total or an amount per CPU or node, by the version of Slurm.
func (s *slurm) size(t *build.Table, c *slurmColumns, r *record) {
	var total slurmTRES
	if text := t.Text(c.tres); text != "" {
		var err error
		if total, err = parseTRES(text); err != nil {
			t.Fail("%w", err)
			return
		}
	}
	r.nodes, r.gpus, r.gpuModel = total.nodes, total.gpus, total.gpuModel
	if c.nodes >= 0 && t.Text(c.nodes) != "" {
		if n := t.Small(c.nodes, maxNodes); n > 0 {
			r.nodes = n
		}
	}
	r.nodes = max(r.nodes, 1)
	cpus := int64(total.cpus)
	if c.cpus >= 0 && t.Text(c.cpus) != "" {
		if n := t.Small(c.cpus, maxCPU); n > 0 {
			cpus = int64(n)
		}
	}
	if t.Failed() {
		return
	}
	r.cpu = perInstance(cpus*milli, r.nodes)
	switch {
	case total.memory > 0:
		r.memory = perInstance(total.memory, r.nodes)
	case c.memory >= 0 && t.Text(c.memory) != "":
		mem, err := parseReqMem(t.Text(c.memory), cpus, r.nodes)
		if err != nil {
			t.Invalid(c.memory, "memory such as 4000M, 4Gc (per CPU) or 16Gn (per node)")
			return
		}
		r.memory = mem
	}
	if cpus == 0 {
		s.Report.Note(1, "jobs without a number of CPUs", "imported without CPUs")
	}
}

// run reads the state and the times of the run.
func (s *slurm) run(t *build.Table, c *slurmColumns, r *record) {
	started, hasStart := t.Time(c.start, slurmTimes...)
	ended, hasEnd := t.Time(c.end, slurmTimes...)
	state, _, _ := strings.Cut(t.Text(c.state), " ") // CANCELLED by 1000
	if !slices.Contains(slurmStates, strings.TrimSuffix(state, "+")) {
		t.Invalid(c.state, "a state of a job, such as COMPLETED")
		return
	}
	switch state {
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT":
		hasStart, hasEnd = false, false
	case "RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED":
		hasEnd = false
	case "PREEMPTED":
		s.Report.Note(1, "jobs that Slurm preempted", "the run until the preemption; a replay may preempt others")
	}
	var elapsed int64
	if c.elapsed >= 0 && t.Text(c.elapsed) != "" {
		var err error
		if elapsed, err = parseElapsed(t.Text(c.elapsed)); err != nil {
			t.Invalid(c.elapsed, "a time such as 1-02:03:04, 02:03 or seconds")
			return
		}
	}
	switch {
	case c.start < 0 && elapsed > 0: // only the elapsed time is known
		if r.run = elapsed; state == "RUNNING" {
			r.state = running
		}
		return
	case c.end < 0 && hasStart && state != "RUNNING":
		ended, hasEnd = started.Add(time.Duration(elapsed)*time.Second), true
	}
	r.setRun(started, hasStart, ended, hasEnd)
	if r.state == ran && elapsed > 0 && elapsed < r.run {
		s.Report.Note(1, "jobs that were suspended while they ran", "the time without the suspension")
		r.run = elapsed
	}
	if r.run > maxRun {
		t.Fail("the job ran for %d s; expected at most %d", r.run, int64(maxRun))
	}
}

// slurmStates are the states that sacct prints.
var slurmStates = []string{
	"BOOT_FAIL", "CANCELLED", "COMPLETED", "COMPLETING", "CONFIGURING", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
	"PENDING", "PREEMPTED", "RECONFIG_FAIL", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", "REVOKED", "RUNNING",
	"SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "SUSPENDED", "TIMEOUT",
}

// dropUnknownPartitions removes the constraints of jobs in partitions that no node has.
func (s *slurm) dropUnknownPartitions() {
	for i := range s.records {
		r := &s.records[i]
		if r.partition != "" && !s.partitions[r.partition] {
			if s.hasNodes {
				s.Report.Note(1, "jobs of a partition that no node has", "they may run on any node")
			}
			r.partition = ""
		}
	}
}
