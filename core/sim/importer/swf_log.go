package importer

import (
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
)

// swfLog is a parsed log file.
type swfLog struct {
	header map[string]int64 // numeric fields of the header, such as MaxNodes
	jobs   []swfJob
}

// swfJob is one line of a log.
type swfJob struct {
	id, submit, run int64
	procs           int
	memoryRequest   int64 // bytes per node with a specification, else KB per processor; -1: unknown
	queueNumber     int64
	queue, spec     string // from the three extra columns; "" without them
}

// memory returns the MiB that a task with so many cores requests.
func (r *swfJob) memory(cores int) int64 {
	const kib, mib = 1 << 10, 1 << 20
	switch {
	case r.memoryRequest <= 0:
		return 0
	case r.spec != "":
		return (r.memoryRequest + mib - 1) / mib
	}
	return (r.memoryRequest*int64(cores) + kib - 1) / kib
}

// Columns of the standard, from 0.
const (
	swfID, swfSubmit, swfRun, swfProcs  = 0, 1, 3, 4
	swfAskedProcs, swfMemory, swfQueue  = 7, 9, 14
	swfColumns                          = 18
	swfAllocated, swfQueueName, swfSpec = 18, 19, 20 // the extra columns
)

// maxRun bounds run times in seconds: longer than any job, and valid in a scenario.
const maxRun = 1e9

// maxMemory ensures that KB per processor times processors fits into an int64.
const maxMemory = 1 << 42

// readSWF reads a log.
func readSWF(b *build.Builder, src Source, file string) (*swfLog, error) {
	l, err := b.OpenLines(src, file)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	log := &swfLog{header: make(map[string]int64)}
	ids := make(map[int64]bool)
	for l.Next() {
		text := strings.TrimSpace(l.Text)
		switch {
		case text == "":
			continue
		case text[0] == ';':
			log.comment(text)
			continue
		}
		r := readSWFJob(l, text)
		if l.Failed() {
			continue
		}
		if ids[r.id] {
			l.Fail("job %d is listed twice", r.id)
		}
		ids[r.id] = true
		log.jobs = append(log.jobs, r)
	}
	return log, l.Err()
}

// comment parses "; MaxNodes: 68" and ignores other comments.
func (log *swfLog) comment(text string) {
	key, value, found := strings.Cut(strings.TrimLeft(text, "; \t"), ":")
	word, _, _ := strings.Cut(strings.TrimSpace(value), " ")
	if n, err := strconv.ParseInt(word, 10, 64); found && err == nil && n >= 0 {
		log.header[strings.TrimSpace(key)] = n
	}
}

func readSWFJob(l *build.Lines, text string) swfJob {
	f := strings.Fields(text)
	if len(f) < swfColumns {
		l.Fail("%d columns; expected the %d of the Standard Workload Format", len(f), swfColumns)
		return swfJob{}
	}
	r := swfJob{
		id: l.Integer(f, swfID), submit: l.Integer(f, swfSubmit), run: l.Integer(f, swfRun),
		memoryRequest: l.Integer(f, swfMemory), queueNumber: l.Integer(f, swfQueue),
	}
	procs := l.Integer(f, swfProcs)
	if procs <= 0 {
		procs = l.Integer(f, swfAskedProcs)
	}
	switch {
	case l.Failed():
	case r.id < 0:
		l.Fail("job number %d; expected 0 or more", r.id)
	case r.submit < 0 || r.submit > build.MaxSeconds || r.run > maxRun:
		l.Fail("submitted at %d s, ran for %d s; expected 0 to %d s, and at most %d s", r.submit, r.run, int64(build.MaxSeconds), int64(maxRun))
	case procs > maxCores:
		l.Fail("%d processors; expected at most %d", procs, maxCores)
	case r.memoryRequest > maxMemory:
		l.Fail("memory request %d is too large", r.memoryRequest)
	}
	r.procs = int(max(procs, 0))
	if len(f) > swfSpec && strings.HasPrefix(f[swfAllocated], "{") {
		r.queue, r.spec = strings.Clone(f[swfQueueName]), strings.Clone(f[swfSpec])
	}
	return r
}

// chunk is a number of equal nodes that a job requests.
type chunk struct {
	nodes, cores int
	properties   []string // required of the nodes, in the notation of the log; ^ negates
}

// parseSpec parses a node specification of the PBS kind, such as
//
//	2:ppn=4:x86_64:cl_zewura+1:ppn=8#excl
//
// It returns false if the specification is invalid.
func parseSpec(text string) (chunks []chunk, exclusive, ok bool) {
	text, flags, _ := strings.Cut(text, "#")
	for part := range strings.SplitSeq(text, "+") {
		c := chunk{nodes: 1, cores: 1}
		for i, word := range strings.Split(part, ":") {
			key, value, valued := strings.Cut(word, "=")
			n, err := strconv.Atoi(word)
			switch {
			case i == 0 && err == nil:
				c.nodes = n
			case key == "ppn" && valued:
				if c.cores, err = strconv.Atoi(value); err != nil {
					return nil, false, false
				}
			case key == "mem" && valued:
				// The memory column of the log has the same information.
			case word == "":
				return nil, false, false
			default:
				c.properties = append(c.properties, word)
			}
		}
		if c.nodes < 1 || c.nodes > maxNodes || c.cores < 1 || c.cores > maxCores {
			return nil, false, false
		}
		chunks = append(chunks, c)
	}
	return chunks, strings.Contains(flags, "excl"), true
}
