package importer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// queueBands maps MetaCentrum's queues to priorities: queues of short jobs precede those
// of week-long jobs. Options.Bands sets the queues of other logs.
func queueBands() map[string]int32 {
	return map[string]int32{
		"q_2h": 80, "q_4h": 80, "ops": 80, "priority_long": 80,
		"q_1d": 50, "q_2d": 50, "q_4d": 50,
		"q_1w": 20, "q_2w": 20, "q_2w_plus": 20, "backfill": 20,
	}
}

// swf is one import of a log.
type swf struct {
	*build.Builder
	bands   *build.Bands
	cluster swfCluster
	first   int64 // submission of the first job, in seconds
}

// SWF imports a log in the Standard Workload Format. See the package documentation.
func SWF(opts Options, src Source) (*scenario.File, *Report, error) {
	file, err := swfFile(src)
	if err != nil {
		return nil, nil, err
	}
	name := build.Stem(file, ".swf")
	b, err := build.New("swf", "workload log "+name, name, opts)
	if err != nil {
		return nil, nil, err
	}
	log, err := readSWF(b, src, file)
	if err != nil {
		return nil, b.Report, err
	}
	s := swf{Builder: b, bands: build.NewBands(queueBands(), opts.Bands)}
	if err := s.readMachines(src, file, log); err != nil {
		return nil, b.Report, err
	}
	if len(log.jobs) > 0 {
		s.first = log.jobs[0].submit
	}
	for i := range log.jobs {
		s.first = min(s.first, log.jobs[i].submit)
	}
	for i := range log.jobs {
		s.job(&log.jobs[i])
	}
	if err := s.bands.Unused(); err != nil {
		return nil, b.Report, err
	}
	return b.Finish()
}

// swfFile returns the named log, or the only one in the folder.
func swfFile(src Source) (string, error) {
	if src.File != "" && !strings.HasSuffix(src.File, ".machines") {
		return src.File, nil
	}
	switch logs := src.Match("*.swf"); len(logs) {
	case 0:
		return "", fmt.Errorf("no .swf or .swf.gz file in this folder (found: %s)", src.Listing())
	case 1:
		return logs[0], nil
	default:
		return "", fmt.Errorf("several logs (%s); pass one of them", strings.Join(logs, ", "))
	}
}

// job adds a job of the log as a gang.
func (s *swf) job(r *swfJob) {
	chunks := s.tasks(r)
	tasks := 0
	for _, c := range chunks {
		tasks += c.nodes
	}
	s.Report.TasksRead += max(tasks, 1)
	id := "j" + strconv.FormatInt(r.id, 10)
	at := time.Duration(r.submit-s.first) * time.Second
	switch {
	case tasks == 0:
		s.Report.LeaveOut(1, "jobs without a number of processors")
		return
	case r.run < 0:
		s.Report.LeaveOut(tasks, "tasks of jobs with a negative or unknown run time")
		return
	case !build.Sampled(id, s.Opts.Sample):
		s.Report.LeaveOut(tasks, "tasks outside the sample")
		return
	case !s.InWindow(at, tasks):
		return
	}
	j := scenario.Job{ID: id, Type: "batch", AllAtOnce: tasks > 1}
	for i, c := range chunks {
		j.Groups = append(j.Groups, s.group(r, i, c))
	}
	j.Priority = new(s.priority(r))
	s.Submit(build.Submission{At: at, Job: j})
}

func (s *swf) priority(r *swfJob) int32 {
	queue := r.queue
	if queue == "" {
		queue = strconv.FormatInt(r.queueNumber, 10)
	}
	p, known := s.bands.Priority(queue)
	if !known {
		s.Report.Note(1, fmt.Sprintf("jobs of queue %.40s, which has no band", queue), fmt.Sprintf("priority %d", p))
	}
	return p
}

func (s *swf) group(r *swfJob, i int, c chunk) scenario.Group {
	g := scenario.Group{
		Name: "g" + strconv.Itoa(i), Count: new(c.nodes),
		Resources: scenario.Quantities{"cpu": int64(c.cores) * 1000},
		Duration:  scenario.Duration(r.run * int64(time.Second)),
	}
	if r.run == 0 {
		s.Report.Note(1, "chunks with a run time of 0", "duration 1s")
		g.Duration = scenario.Duration(time.Second)
	}
	switch memory := r.memory(c.cores); {
	case memory <= 0:
		s.Report.Note(c.nodes, "tasks without a memory request", "imported without memory")
	case !s.cluster.memory:
		s.Report.Note(c.nodes, "tasks with a memory request on nodes of unknown memory", "imported without memory")
	default:
		g.Resources["memory"] = memory
	}
	g.Constraints = s.constraints(c.properties)
	return g
}

// tasks returns the distribution of a job over nodes: that of its specification, or as
// few nodes as possible.
func (s *swf) tasks(r *swfJob) []chunk {
	if r.spec != "" {
		chunks, exclusive, ok := parseSpec(r.spec)
		if ok {
			if exclusive {
				s.Report.Note(1, "jobs that request whole nodes (#excl)", "they request only their cores")
			}
			return s.check(r, chunks)
		}
		s.Report.Note(1, "node specifications that cannot be read, such as half a core", "as few nodes as possible")
	}
	if r.procs <= 0 {
		return nil
	}
	return spreadOver(r.procs, (r.procs+s.cluster.cores-1)/s.cluster.cores)
}

// spreadOver distributes processors over nodes as evenly as possible.
func spreadOver(procs, nodes int) []chunk {
	each, more := procs/nodes, procs%nodes
	if more == 0 {
		return []chunk{{nodes: nodes, cores: each}}
	}
	return []chunk{{nodes: more, cores: each + 1}, {nodes: nodes - more, cores: each}}
}

// check compares a specification with the processors in the log.
func (s *swf) check(r *swfJob, chunks []chunk) []chunk {
	total := 0
	for _, c := range chunks {
		total += c.nodes * c.cores
	}
	if r.procs > 0 && total != r.procs {
		s.Report.Note(1, "jobs with a specification that contradicts their processors", "the specification applies")
	}
	return chunks
}

// constraints returns constraints for the properties of a chunk that the nodes have.
func (s *swf) constraints(properties []string) []scenario.Constraint {
	var list []scenario.Constraint
	for _, p := range properties {
		op := model.OpEqual
		word, not := strings.CutPrefix(p, "^")
		if not {
			op = model.OpNotEqual
		}
		host, _, _ := strings.Cut(strings.TrimPrefix(word, "host="), ".")
		switch {
		case s.cluster.names[strings.TrimPrefix(word, "cl_")]:
			list = append(list, scenario.Constraint{
				Attribute: "cluster", Operator: string(op), Value: strings.TrimPrefix(word, "cl_"),
			})
		case strings.HasPrefix(word, "nodecpus") && isNumber(word[len("nodecpus"):]):
			list = append(list, scenario.Constraint{
				Attribute: "cores", Operator: string(op), Value: word[len("nodecpus"):],
			})
		case s.cluster.hosts[host]:
			list = append(list, scenario.Constraint{Attribute: "node.id", Operator: string(op), Value: host})
		case s.cluster.all[host] && not: // holds on every retained node
		case s.cluster.all[host]:
			s.Report.Note(1, "chunks bound to a node that was not retained", "they may run on any node")
		default:
			s.Report.Note(1, "chunks with node properties that are not in the machine file", "not imported")
		}
	}
	return list
}

func isNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0
}
