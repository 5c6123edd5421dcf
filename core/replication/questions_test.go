package replication

import (
	"testing"
	"testing/synctest"
	"time"
)

// What was asked before Close is answered before Raft is shut down, and nothing is asked after
// it; but Close does not wait for ever.
func TestQuestions_AreAnsweredBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q questions
		for range 2 {
			if !q.begin() {
				t.Fatal("nothing may be asked")
			}
		}
		time.AfterFunc(300*time.Millisecond, q.answered)
		time.AfterFunc(500*time.Millisecond, q.answered)
		from := time.Now()
		q.end(time.Second)
		if took := time.Since(from); took != 500*time.Millisecond || q.begin() {
			t.Errorf("the end came after %v, or something is asked after it", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var q questions
		q.begin()
		from := time.Now()
		q.end(time.Second)
		q.end(time.Second)
		if took := time.Since(from); took != time.Second {
			t.Errorf("with a question that nobody answers the end came after %v", took)
		}
		q.answered()
	})
}
