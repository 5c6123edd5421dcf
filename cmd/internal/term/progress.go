package term

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
)

// Minimum intervals between two progress lines.
const (
	liveEvery  = 100 * time.Millisecond
	plainEvery = 10 * time.Second
)

// Progress reports the progress of long operations: one line that is rewritten on a
// terminal, or one line every ten seconds on other streams. If the operation ends
// before the first line is due, none is shown.
type Progress struct {
	w     io.Writer
	live  bool
	width func() int
	clock clock.Clock

	mu    sync.Mutex
	begun time.Time
	next  time.Time // time of the next line
	shown bool      // a live line is on the terminal
	over  bool
	timer clock.Timer // of Repeat; nil: it was not called
}

// NewProgress starts a progress display. If live is set, w is a terminal that can
// rewrite a line; width returns the terminal's width.
func NewProgress(w io.Writer, live bool, width func() int, c clock.Clock) *Progress {
	now := c.Now()
	first := plainEvery
	if live {
		first = 5 * liveEvery // short operations show no progress
	}
	return &Progress{w: w, live: live, width: width, clock: c, begun: now, next: now.Add(first)}
}

// Show prints the result of text unless a line was printed very recently. text
// receives the time since the start.
func (p *Progress) Show(text func(elapsed time.Duration) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if p.over || now.Before(p.next) {
		return
	}
	line := text(now.Sub(p.begun))
	if !p.live {
		p.next = now.Add(plainEvery)
		_, _ = fmt.Fprintln(p.w, line) // an error of the progress output cannot be reported
		return
	}
	p.next = now.Add(liveEvery)
	p.shown = true
	_, _ = fmt.Fprint(p.w, "\r\x1b[K", clip(line, p.width()))
}

// Repeat calls Show with text until Done, for operations that do not report their progress
// often. text is called on another goroutine.
func (p *Progress) Repeat(text func(elapsed time.Duration) string) {
	p.Show(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.timer = p.clock.AfterFunc(liveEvery, func() { p.Repeat(text) })
	}
}

// Clear erases the live line, so that other output can be written. The next Show
// writes it again.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		p.shown = false
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// Done ends the display. Later calls of Show have no effect.
func (p *Progress) Done() {
	p.Clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// clip truncates a line to the width, since a wrapped line cannot be rewritten.
func clip(line string, width int) string {
	if width < 2 || Columns(line) < width {
		return line
	}
	n := 0
	for i, r := range line {
		if n += runeColumns(r); n > width-2 {
			return line[:i] + "…"
		}
	}
	return line
}
