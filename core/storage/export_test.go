package storage

// Sweeping is whether deleted entries are still on the disk.
func (l *Log) Sweeping() bool {
	_, floor := l.reach()
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	return l.swept < floor
}

// CopySparse copies a file and leaves its holes.
var CopySparse = copySparse

// NextData is where a file goes on after a hole.
var NextData = nextData
