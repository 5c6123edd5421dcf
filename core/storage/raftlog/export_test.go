package raftlog

// IsSweeping reports whether deleted entries are still on the disk.
func (l *Log) IsSweeping() bool {
	_, floor := l.Bounds()
	l.sweepMu.Lock()
	defer l.sweepMu.Unlock()
	return l.swept < floor
}
