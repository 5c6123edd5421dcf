package storage_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/storage"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		os.Exit(child(role, os.Getenv(childDir)))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}

// soak multiplies a test's count when CEDE_SOAK=1, and divides it when
// CEDE_QUICK=1.
func soak(n int) int {
	switch {
	case os.Getenv("CEDE_SOAK") == "1":
		return n * 50
	case os.Getenv("CEDE_QUICK") != "":
		return max(1, n/4)
	}
	return n
}

// small asks for little room, for tests on small disks.
func small() storage.LogConfig { return storage.LogConfig{MinFree: 48 << 20} }

// openLog opens the log in dir and closes it with the test.
func openLog(t testing.TB, dir string) *storage.Log {
	t.Helper()
	l, err := storage.OpenLog(storage.Layout{Dir: dir}, small())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}
