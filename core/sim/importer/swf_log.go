package importer

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
func (b *builder) readSWF(src Source, file string) (*swfLog, error) {
	b.report.Files = append(b.report.Files, file)
	l, err := src.lines(file)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	log := &swfLog{header: make(map[string]int64)}
	ids := make(map[int64]bool)
	for l.next() {
		text := strings.TrimSpace(l.text)
		switch {
		case text == "":
			continue
		case text[0] == ';':
			log.comment(text)
			continue
		}
		r := l.swfJob(text)
		if l.err != nil {
			break
		}
		if ids[r.id] {
			l.fail("job %d is listed twice", r.id)
		}
		ids[r.id] = true
		log.jobs = append(log.jobs, r)
	}
	return log, l.err
}

// comment parses "; MaxNodes: 68" and ignores other comments.
func (log *swfLog) comment(text string) {
	key, value, found := strings.Cut(strings.TrimLeft(text, "; \t"), ":")
	word, _, _ := strings.Cut(strings.TrimSpace(value), " ")
	if n, err := strconv.ParseInt(word, 10, 64); found && err == nil && n >= 0 {
		log.header[strings.TrimSpace(key)] = n
	}
}

func (l *lines) swfJob(text string) swfJob {
	f := strings.Fields(text)
	if len(f) < swfColumns {
		l.fail("%d columns; expected the %d of the Standard Workload Format", len(f), swfColumns)
		return swfJob{}
	}
	r := swfJob{
		id: l.integer(f, swfID), submit: l.integer(f, swfSubmit), run: l.integer(f, swfRun),
		memoryRequest: l.integer(f, swfMemory), queueNumber: l.integer(f, swfQueue),
	}
	procs := l.integer(f, swfProcs)
	if procs <= 0 {
		procs = l.integer(f, swfAskedProcs)
	}
	switch {
	case l.err != nil:
	case r.id < 0:
		l.fail("job number %d; expected 0 or more", r.id)
	case r.submit < 0 || r.submit > maxSeconds || r.run > maxRun:
		l.fail("submitted at %d s, ran for %d s; expected 0 to %d s, and at most %d s", r.submit, r.run, int64(maxSeconds), int64(maxRun))
	case procs > maxCores:
		l.fail("%d processors; expected at most %d", procs, maxCores)
	case r.memoryRequest > maxMemory:
		l.fail("memory request %d is too large", r.memoryRequest)
	}
	r.procs = int(max(procs, 0))
	if len(f) > swfSpec && strings.HasPrefix(f[swfAllocated], "{") {
		r.queue, r.spec = strings.Clone(f[swfQueueName]), strings.Clone(f[swfSpec])
	}
	return r
}

// lines reads a text file line by line. The first error ends reading, as in table.
type lines struct {
	*reader
	file string
	text string
	line int
	err  error
	scan *bufio.Scanner
}

func (s Source) lines(name string) (*lines, error) {
	r, err := s.open(name)
	if err != nil {
		return nil, err
	}
	l := &lines{reader: r, file: name, scan: bufio.NewScanner(r)}
	l.scan.Buffer(nil, maxRow)
	return l, nil
}

func (l *lines) next() bool {
	if l.err != nil {
		return false
	}
	l.line++
	if l.scan.Scan() {
		l.text = l.scan.Text()
		return true
	}
	switch err := l.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		l.fail("a line longer than %d bytes", maxRow)
	case err != nil:
		l.fail("cannot continue reading: %w", err)
	}
	return false
}

func (l *lines) fail(format string, args ...any) {
	if l.err == nil {
		l.err = &FileError{l.file, l.line, fmt.Errorf(format, args...)}
	}
}

// integer reads field i. Some logs write integers with decimals, which are truncated.
func (l *lines) integer(f []string, i int) int64 {
	whole, _, _ := strings.Cut(f[i], ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		l.fail("column %d is %.40q; expected a number", i+1, f[i])
	}
	return n
}

// number reads field i, which must be between 0 and most.
func (l *lines) number(f []string, i int, most int64) int64 {
	n := l.integer(f, i)
	if l.err == nil && (n < 0 || n > most) {
		l.fail("column %d is %d; expected 0 to %d", i+1, n, most)
		return 0
	}
	return n
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
