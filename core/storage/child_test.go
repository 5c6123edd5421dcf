package storage_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/doctor"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// The test binary runs itself where a process may or must die.
const (
	childRole = "CEDE_STORAGE_TEST_ROLE"
	childDir  = "CEDE_STORAGE_TEST_DIR"
)

// send writes a line to the parent.
func send(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

// child runs the given role and returns the exit code.
func child(role, dir string) int {
	var err error
	switch role {
	case "append":
		err = childAppends(dir, storagetest.SmallLogConfig(), true)
	case "fill":
		err = childAppends(dir, raftlog.Config{}, false)
	case "fill to the last byte":
		err = childAppends(dir, raftlog.Config{MinFree: -1}, false)
	case "close when full":
		err = childClosesWhenFull(dir)
	case "open":
		err = childOpens(dir)
	case "doctor":
		err = childExamines(dir)
	case "keep":
		err = childKeeps(dir)
	case "scribble":
		err = childScribbles(dir)
	}
	if err != nil {
		send("error %v", err)
	}
	return 0
}

// childClosesWhenFull stores entries and history, fills the disk to the last byte, and closes
// the directory.
func childClosesWhenFull(dir string) error {
	s, err := storage.Open(storage.Config{Dir: dir, Log: storagetest.SmallLogConfig()})
	if err != nil {
		return err
	}
	for i := uint64(1); i <= 1000; i++ {
		if err := s.Log().StoreLog(storagetest.Entry(i, 1)); err != nil {
			return err
		}
	}
	filler, err := os.Create(filepath.Join(dir, "..", "filler"))
	if err != nil {
		return err
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	send("closed: %v", s.Close())
	send("closed again: %v", s.Close())
	return nil
}

// childAppends appends entries, deletes the newest and optionally the oldest, and reports
// after each round which entries must exist from then on: first, last, and the term of the
// last batch.
func childAppends(dir string, cfg raftlog.Config, compact bool) error {
	cfg.OnFault = func(err error) { send("fault %v", err) }
	l, err := raftlog.Open(datadir.Layout{Dir: dir}, cfg)
	if err != nil {
		return err
	}
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	term, err := l.GetUint64([]byte("CurrentTerm"))
	if err != nil {
		return err
	}
	first = max(first, 1)
	size := 1000
	if !compact {
		size = 16_000
	}
	// giveUp reports how the log reacts to the first and the next write after an error.
	giveUp := func(err error) error {
		again := l.StoreLog(storagetest.Entry(last+1, term))
		send("refused %v; again: %v", errors.Is(err, datadir.ErrNoSpace), errors.Is(again, datadir.ErrFailed))
		time.Sleep(50 * time.Millisecond) // OnFault reports in the meantime
		return err
	}
	for round := uint64(1); ; round++ {
		term++
		if err := l.SetUint64([]byte("CurrentTerm"), term); err != nil {
			return giveUp(err)
		}
		batch := storagetest.Entries(last+1, last+1+round%64, term)
		for _, e := range batch {
			e.Data = append(e.Data, make([]byte, size)...)
		}
		if err := l.StoreLogs(batch); err != nil {
			return giveUp(err)
		}
		last = batch[len(batch)-1].Index
		if round%7 == 0 {
			if err := l.DeleteRange(last-1, last); err != nil {
				return giveUp(err)
			}
			last -= 2
		}
		if compact && round%50 == 0 && last > first+600 {
			// If the process dies during the deletion, these entries may exist or not.
			send("deleting %d", last-500)
			if err := l.DeleteRange(first, last-500); err != nil {
				return giveUp(err)
			}
			first = last - 499
		}
		send("ack %d %d %d", first, last, term)
	}
}

// childOpens opens the log and reads every entry.
func childOpens(dir string) error {
	l, err := raftlog.Open(datadir.Layout{Dir: dir}, storagetest.SmallLogConfig())
	if err != nil {
		var damage *datadir.DamageError
		send("refused %v %v", errors.As(err, &damage), err)
		return nil
	}
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	for i := first; i <= last; i++ {
		var e raft.Log
		if err := l.GetLog(i, &e); err != nil {
			return err
		}
	}
	send("opened %d %d", first, last)
	return l.Close()
}

// childExamines runs in its own process because Badger leaks goroutines if it does not
// open.
func childExamines(dir string) error {
	report, err := doctor.Run(context.Background(), dir)
	if err == nil {
		send("damaged %v %+v", report.Damaged(), report.Findings)
	}
	return err
}

// childKeeps appends to the history and uploads modules until it is killed.
func childKeeps(dir string) error {
	s, err := storage.Open(storage.Config{Dir: dir, Log: storagetest.SmallLogConfig()})
	if err != nil {
		return err
	}
	for i := s.History().Stats().Last.Index + 1; ; i++ {
		if err := s.History().Append("event", i, 0, fmt.Appendf(nil, "event %d", i)); err != nil {
			return err
		}
		if i%20 == 0 {
			data := storagetest.RandomBytes(300_000, i)
			digest := blob.Digest(data)
			err := errors.Join(
				s.Blobs().PutChunk(digest, 0, data[:blob.MaxChunkBytes]),
				s.Blobs().PutChunk(digest, blob.MaxChunkBytes, data[blob.MaxChunkBytes:]),
				s.Blobs().Finish(digest, int64(len(data))),
			)
			if err != nil {
				return err
			}
			send("blob %s", digest)
		}
		send("event %d", i)
	}
}

// childScribbles writes without a sync.
func childScribbles(dir string) error {
	if err := os.WriteFile(dir+"/scribble", []byte("unsynced"), 0o600); err != nil {
		return err
	}
	send("done")
	time.Sleep(time.Hour)
	return nil
}

// process is a running child.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
	err   *strings.Builder
}

// spawn starts the test binary in the given role.
func spawn(t testing.TB, role, dir string) *process {
	t.Helper()
	if soak.Race && !soak.Full() {
		t.Skip("processes start slowly under the race detector, and the tests of raftlog and history have the same goroutines: set CEDE_SOAK=1")
	}
	p := &process{t: t, cmd: exec.Command(os.Args[0]), err: &strings.Builder{}}
	p.cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir)
	p.cmd.Stderr = p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	return p
}

// read calls f for each line until it returns false or the child ends.
func (p *process) read(f func(line string) bool) {
	for p.lines.Scan() {
		if !f(p.lines.Text()) {
			return
		}
	}
}

// kill kills the child and reads its remaining output.
func (p *process) kill(f func(line string)) {
	p.t.Helper()
	_ = p.cmd.Process.Kill()
	p.read(func(line string) bool {
		f(line)
		return true
	})
	_ = p.cmd.Wait()
}

// run runs a child to its end and returns its output, with the exit error if it failed.
func run(t testing.TB, role, dir string) string {
	t.Helper()
	p := spawn(t, role, dir)
	var b strings.Builder
	p.read(func(line string) bool {
		b.WriteString(line + "\n")
		return true
	})
	if err := p.cmd.Wait(); err != nil {
		return b.String() + "died: " + err.Error() + "\n" + p.err.String()
	}
	return b.String()
}

// acked holds what an appending child has acknowledged.
type acked struct{ first, last, term, deleting uint64 }

// parse updates the acknowledged range from a line, and reports whether the line was one of
// the known forms.
func (a *acked) parse(line string) bool {
	if _, err := fmt.Sscanf(line, "deleting %d", &a.deleting); err == nil {
		return true
	}
	_, err := fmt.Sscanf(line, "ack %d %d %d", &a.first, &a.last, &a.term)
	return err == nil
}

// check opens the log and compares it with everything acknowledged.
func (a *acked) check(t testing.TB, dir string) {
	t.Helper()
	a.checkBy(t, dir, storagetest.SmallLogConfig())
}

func (a *acked) checkBy(t testing.TB, dir string, cfg raftlog.Config) {
	t.Helper()
	l, err := raftlog.Open(datadir.Layout{Dir: dir}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	// A round that was not reported may have deleted the last two entries.
	if first > max(a.first, a.deleting+1) || last+2 < a.last {
		t.Fatalf("log holds %d to %d; %d to %d were acknowledged", first, last, a.first, a.last)
	}
	if term, err := l.GetUint64([]byte("CurrentTerm")); term < a.term || err != nil {
		t.Errorf("term %d, error %v; term %d was acknowledged", term, err, a.term)
	}
	term := uint64(0)
	for i := first; i <= last; i++ {
		var e raft.Log
		if err := l.GetLog(i, &e); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("entry %d of term %d", i, e.Term); !strings.HasPrefix(string(e.Data), want) || e.Term < term {
			t.Fatalf("entry %d of term %d holds %.40q", i, e.Term, e.Data)
		}
		term = e.Term
	}
	if last == a.last && a.term > 0 && term < a.term-1 {
		t.Errorf("last entry has term %d; term %d was acknowledged", term, a.term)
	}
}
