package process

// lineWriter is a writer that hands on what it is given line by line. A longer line
// than most is cut: nobody is made to keep what a process prints.
type lineWriter struct {
	maxLen int
	emit   func(line string)

	buf       []byte // the beginning of a line; its capacity never exceeds most
	truncated bool   // the line was handed on already, cut; its rest is dropped
}

// Write never fails: a process must not be stopped by what it prints.
func (l *lineWriter) Write(b []byte) (int, error) {
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

func (l *lineWriter) add(part []byte) {
	if l.truncated {
		return
	}
	room := l.maxLen - len(l.buf)
	l.buf = append(l.buf, part[:min(room, len(part))]...)
	if len(part) > room {
		l.emit(string(l.buf) + " ...")
		l.buf, l.truncated = l.buf[:0], true
	}
}

// end closes a line; at the end of all it hands on what has no end.
func (l *lineWriter) end() {
	if !l.truncated {
		l.emit(string(l.buf))
	}
	l.buf, l.truncated = l.buf[:0], false
}

// flush hands on a last line that has no end.
func (l *lineWriter) flush() {
	if len(l.buf) > 0 {
		l.end()
	}
}
