package process

// lines is a writer that hands on what it is given line by line. A longer line
// than most is cut: nobody is made to keep what a process prints.
type lines struct {
	most int
	each func(line string)

	held []byte // the beginning of a line; its capacity never exceeds most
	long bool   // the line was handed on already, cut; its rest is dropped
}

// Write never fails: a process must not be stopped by what it prints.
func (l *lines) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		line, rest, whole := cutLine(b)
		l.add(line)
		if whole {
			l.end()
		}
		b = rest
	}
	return n, nil
}

func cutLine(b []byte) (line, rest []byte, whole bool) {
	for i, c := range b {
		if c == '\n' {
			return b[:i], b[i+1:], true
		}
	}
	return b, nil, false
}

func (l *lines) add(part []byte) {
	if l.long {
		return
	}
	room := l.most - len(l.held)
	l.held = append(l.held, part[:min(room, len(part))]...)
	if len(part) > room {
		l.each(string(l.held) + " ...")
		l.held, l.long = l.held[:0], true
	}
}

// end closes a line; at the end of all it hands on what has no end.
func (l *lines) end() {
	if !l.long {
		l.each(string(l.held))
	}
	l.held, l.long = l.held[:0], false
}

// flush hands on a last line that has no end.
func (l *lines) flush() {
	if len(l.held) > 0 {
		l.end()
	}
}
