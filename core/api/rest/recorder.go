package rest

import (
	"cmp"
	"net/http"
	"time"
)

// piece is the number of bytes that are written under one deadline. A client that
// reads a long response steadily may take any time for the whole.
const piece = 256 << 10

// Recorder records the status and size of a response and sets a write deadline for
// each piece of it. The HTTP server has no write deadline, because it would end
// blocking queries and streams.
type Recorder struct {
	http.ResponseWriter
	Control  *http.ResponseController
	within   time.Duration
	Status   int
	Bytes    int64
	BodyRead bool // the request body was read to its end
	Broken   bool // a part of the response was sent and the rest cannot be
}

// NewRecorder returns a recorder of one response. within limits each write.
func NewRecorder(w http.ResponseWriter, within time.Duration) *Recorder {
	return &Recorder{ResponseWriter: w, Control: http.NewResponseController(w), within: within}
}

// WriteHeader records the status of the first call and passes it on.
func (w *Recorder) WriteHeader(status int) {
	w.Status = cmp.Or(w.Status, status)
	w.renew()
	w.ResponseWriter.WriteHeader(status)
}

func (w *Recorder) Write(p []byte) (written int, err error) {
	w.Status = cmp.Or(w.Status, http.StatusOK)
	for err == nil && len(p) > 0 {
		var n int
		w.renew()
		n, err = w.ResponseWriter.Write(p[:min(piece, len(p))])
		p = p[n:]
		written += n
	}
	w.Bytes += int64(written)
	return written, err
}

// renew sets a new deadline. The error is ignored: writers of tests have no
// deadlines.
func (w *Recorder) renew() { _ = w.Control.SetWriteDeadline(time.Now().Add(w.within)) }

// Flush sends the data that was written so far.
func (w *Recorder) Flush() error {
	w.renew()
	return w.Control.Flush()
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
