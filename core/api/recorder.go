package api

import (
	"net/http"
	"time"
)

// piece is how much is written to a client under one deadline: whoever takes a
// long answer steadily may take long over the whole.
const piece = 256 << 10

// recorder remembers what was answered, and gives the client a deadline for
// each piece of it. The server itself has none for writing: it would end
// blocking queries and streams.
type recorder struct {
	http.ResponseWriter
	control  *http.ResponseController
	within   time.Duration
	status   int
	bytes    int64
	bodyRead bool // to its end
	broken   bool // half an answer is out
}

func newRecorder(w http.ResponseWriter, within time.Duration) *recorder {
	return &recorder{ResponseWriter: w, control: http.NewResponseController(w), within: within}
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.renew()
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (written int, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for err == nil && len(p) > 0 {
		var n int
		w.renew()
		n, err = w.ResponseWriter.Write(p[:min(piece, len(p))])
		p = p[n:]
		written += n
	}
	w.bytes += int64(written)
	return written, err
}

// renew sets the deadline anew. What has none, such as a recorder of tests,
// needs none.
func (w *recorder) renew() { _ = w.control.SetWriteDeadline(time.Now().Add(w.within)) }

// flush sends what was written so far.
func (w *recorder) flush() error {
	w.renew()
	return w.control.Flush()
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
