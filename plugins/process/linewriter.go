package process

// lineWriter splits its input into lines and passes each to emit. Lines longer than maxLen
// are truncated, so that the output of a process takes bounded memory.
type lineWriter struct {
	maxLen int
	emit   func(line string)

	buf       []byte // start of the current line; its capacity never exceeds maxLen
	truncated bool   // the line was emitted truncated; the rest is dropped
}

// Write never fails: output must not stop a process.
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

// cutLine splits b after its first line. whole reports whether the line is complete.
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

// end completes a line.
func (l *lineWriter) end() {
	if !l.truncated {
		l.emit(string(l.buf))
	}
	l.buf, l.truncated = l.buf[:0], false
}

// flush emits a last line without a newline.
func (l *lineWriter) flush() {
	if len(l.buf) > 0 {
		l.end()
	}
}
