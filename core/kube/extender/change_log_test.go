package extender

import (
	"fmt"
	"testing"
)

// A reader that keeps up continues when old changes are dropped. If a reader falls
// behind, or has another epoch, since returns false.
func TestChangeLog_DropsOldChanges(t *testing.T) {
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
		t.Errorf("%d changes retained of %d", len(l.list), l.size())
	}
	if _, known := l.since(l.epoch, 0); known {
		t.Error("dropped changes were returned")
	}
	epoch := l.epoch
	if l.restart(); l.size() != 0 {
		t.Error("new epoch is not empty")
	}
	if _, known := l.since(epoch, 0); known {
		t.Error("changes of a previous epoch were returned")
	}
}
