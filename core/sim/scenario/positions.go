package scenario

// positions records the line of each value of a document, so that checks of the
// decoded File can report line numbers. It is a log of the values in document order,
// and each entry holds the end of its subtree.
//
// A value on the same line as its parent is omitted: a document with one job per line
// needs one entry per job, and one with one value per line 12 bytes per value.
type positions struct {
	log   []position
	names map[string]int32 // key ids, from 1
	lines []int32          // lines of the open values
}

type position struct {
	step int32 // index of an element, or the negated id of a key
	line int32
	end  int32 // position in log after the subtree
}

// maxKeys bounds the table of keys, which mappings with free keys (labels, attributes)
// could grow without limit. A key beyond it gets the line of its parent.
const maxKeys = 1 << 16

// open starts a value and returns the mark to pass to close.
func (ps *positions) open(s step, line int) int {
	id := int32(s.index)
	if s.index < 0 {
		id = -ps.key(s.key)
	}
	ps.log = append(ps.log, position{step: id, line: int32(line)})
	ps.lines = append(ps.lines, int32(line))
	return len(ps.log) - 1
}

func (ps *positions) close(at int) {
	ps.lines = ps.lines[:len(ps.lines)-1]
	around := int32(1)
	if n := len(ps.lines); n > 0 {
		around = ps.lines[n-1]
	}
	if at == len(ps.log)-1 && ps.log[at].line == around {
		ps.log = ps.log[:at]
		return
	}
	ps.log[at].end = int32(len(ps.log))
}

// last returns the line of the innermost open value.
func (ps *positions) last() int {
	if n := len(ps.lines); n > 0 {
		return int(ps.lines[n-1])
	}
	return 1
}

// key returns the id of a key, or 0 if the table is full.
func (ps *positions) key(name string) int32 {
	id, ok := ps.names[name]
	if !ok {
		if len(ps.names) == maxKeys {
			return 0
		}
		if ps.names == nil {
			ps.names = map[string]int32{}
		}
		id = int32(len(ps.names) + 1)
		ps.names[name] = id
	}
	return id
}

// line returns the line of the value at a path, or of the nearest enclosing value that
// has a line of its own.
func (ps *positions) line(path string) int {
	line, at, end := int32(1), int32(0), int32(len(ps.log))
	for _, s := range steps(path) {
		id := int32(s.index)
		if s.index < 0 {
			if id = -ps.names[s.key]; id == 0 {
				break
			}
		}
		for at < end && ps.log[at].step != id {
			at = ps.log[at].end
		}
		if at == end {
			break
		}
		line, end = ps.log[at].line, ps.log[at].end
		at++
	}
	return int(line)
}
