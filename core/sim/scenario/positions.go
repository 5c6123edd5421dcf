package scenario

// positions remembers on which line each value of a document stands, so that
// checks which only see the finished File can still point at the text. It is a
// log of the values in document order, each knowing where its subtree ends.
//
// A value on the same line as what holds it is left out: a document with one
// job a line costs one entry a job, and one with a value a line 12 bytes a
// value.
type positions struct {
	log   []position
	names map[string]int32 // ids of keys, from 1
	lines []int32          // of the values that are open
}

type position struct {
	step int32 // index of an element, or the negative id of a key
	line int32
	end  int32 // position in log after the subtree
}

// maxKeys bounds the table of keys. Maps with free keys (labels, attributes)
// could fill it without end; a key that is not in it stands on its parent's line.
const maxKeys = 1 << 16

// open starts a value. The number returned is for close.
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

// last is the line of the value that is open.
func (ps *positions) last() int {
	if n := len(ps.lines); n > 0 {
		return int(ps.lines[n-1])
	}
	return 1
}

// key is the id of a key; 0 when the table is full.
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

// line is where the value at a path stands, or the nearest value around it
// that has a line of its own.
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
