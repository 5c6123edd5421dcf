package extender

import (
	"fmt"
	"testing"
)

// Who follows goes on when old changes are forgotten; who has not asked for long begins
// anew, and so does who knows another epoch.
func TestChangeLog_ForgetsWhatIsLongAgo(t *testing.T) {
	var l changeLog
	l.restart()
	at, all := 0, 3*maxChanges
	for i := range all {
		l.add(podRemoval(fmt.Sprint(i)))
		if i%1000 != 0 && i != all-1 {
			continue
		}
		news, known := l.since(l.epoch, at)
		if !known || len(news) != i+1-at || news[0].key != fmt.Sprint(at) || news[len(news)-1].key != fmt.Sprint(i) {
			t.Fatalf("after %d changes: known %t, %d of them since %d", i+1, known, len(news), at)
		}
		at += len(news)
	}
	if len(l.list) > maxChanges || l.size() != all {
		t.Errorf("%d changes are kept of %d", len(l.list), l.size())
	}
	if _, known := l.since(l.epoch, 0); known {
		t.Error("what is long ago is still known")
	}
	epoch := l.epoch
	if l.restart(); l.size() != 0 {
		t.Error("another epoch begins with changes")
	}
	if _, known := l.since(epoch, 0); known {
		t.Error("another epoch was followed")
	}
}
