package storage_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
)

// The test binary runs itself where a process is to die, or might.
const (
	childRole = "CEDE_STORAGE_TEST_ROLE"
	childDir  = "CEDE_STORAGE_TEST_DIR"
)

// say tells the parent a line.
func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

// child is what the process does in a role; it returns the exit code.
func child(role, dir string) int {
	var err error
	switch role {
	case "append":
		err = childAppends(dir, storagetest.SmallLogConfig(), true)
	case "fill":
		err = childAppends(dir, raftlog.Config{}, false)
	case "fill to the last byte":
		err = childAppends(dir, raftlog.Config{MinFree: -1}, false)
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
		say("error %v", err)
	}
	return 0
}

// childAppends appends, deletes the newest and perhaps the oldest, and tells each time what must be
// there from then on: first, last, and the term of the last batch with where
// that began.
func childAppends(dir string, cfg raftlog.Config, compact bool) error {
	cfg.OnFault = func(err error) { say("fault %v", err) }
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
	giveUp := func(err error) error {
		again := l.StoreLog(storagetest.Entry(last+1, term))
		say("refused %v; again: %v", errors.Is(err, datadir.ErrNoSpace), errors.Is(again, datadir.ErrFailed))
		time.Sleep(50 * time.Millisecond) // a fault is told meanwhile
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
			// What is being deleted while the process dies may be there or not.
			say("deleting %d", last-500)
			if err := l.DeleteRange(first, last-500); err != nil {
				return giveUp(err)
			}
			first = last - 499
		}
		say("ack %d %d %d", first, last, term)
	}
}

// childOpens opens the log and reads all of it.
func childOpens(dir string) error {
	l, err := raftlog.Open(datadir.Layout{Dir: dir}, storagetest.SmallLogConfig())
	if err != nil {
		var damage *datadir.DamageError
		say("refused %v %v", errors.As(err, &damage), err)
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
	say("opened %d %d", first, last)
	return l.Close()
}

// childExamines is in a process of its own because Badger leaves goroutines
// behind when it does not open.
func childExamines(dir string) error {
	report, err := doctor.Run(context.Background(), dir)
	if err == nil {
		say("damaged %v %+v", report.Damaged(), report.Findings)
	}
	return err
}

// childKeeps appends to the history and uploads modules.
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
			say("blob %s", digest)
		}
		say("event %d", i)
	}
}

// childScribbles writes without a sync, which nobody may rely on.
func childScribbles(dir string) error {
	if err := os.WriteFile(dir+"/scribble", []byte("unsynced"), 0o600); err != nil {
		return err
	}
	say("done")
	time.Sleep(time.Hour)
	return nil
}

// process is a child that runs.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
	err   *strings.Builder
}

func spawn(t testing.TB, role, dir string) *process {
	t.Helper()
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

// read gives each line to f until it says false or the child ends.
func (p *process) read(f func(line string) bool) {
	for p.lines.Scan() {
		if !f(p.lines.Text()) {
			return
		}
	}
}

// kill ends the child without a word to it, and reads what it still said.
func (p *process) kill(f func(line string)) {
	p.t.Helper()
	_ = p.cmd.Process.Kill()
	p.read(func(line string) bool {
		f(line)
		return true
	})
	_ = p.cmd.Wait()
}

// run runs a child to its end, and gives all it said.
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

// acked is what a child that appends has promised.
type acked struct{ first, last, term, deleting uint64 }

func (a *acked) hear(line string) bool {
	if _, err := fmt.Sscanf(line, "deleting %d", &a.deleting); err == nil {
		return true
	}
	_, err := fmt.Sscanf(line, "ack %d %d %d", &a.first, &a.last, &a.term)
	return err == nil
}

// check opens the log and finds every promised entry.
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
	// A round that was not told of any more may have deleted the last two.
	if first > max(a.first, a.deleting+1) || last+2 < a.last {
		t.Fatalf("%d to %d are there; %d to %d were acknowledged", first, last, a.first, a.last)
	}
	if term, err := l.GetUint64([]byte("CurrentTerm")); term < a.term || err != nil {
		t.Errorf("the term is %d, %v; %d was acknowledged", term, err, a.term)
	}
	term := uint64(0)
	for i := first; i <= last; i++ {
		var e raft.Log
		if err := l.GetLog(i, &e); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("entry %d of term %d", i, e.Term); !strings.HasPrefix(string(e.Data), want) || e.Term < term {
			t.Fatalf("entry %d of term %d says %.40q", i, e.Term, e.Data)
		}
		term = e.Term
	}
	if last == a.last && a.term > 0 && term < a.term-1 {
		t.Errorf("the last entry is of term %d; term %d was acknowledged", term, a.term)
	}
}
