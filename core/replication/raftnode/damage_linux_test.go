package raftnode_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/cede-scheduler/cede/core/storage/storagetest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden file")

// Every file of a data directory is damaged in every way, and doctor and a server open the
// result. The golden file lists the outcomes; see outcome for those that are allowed.
//
// Without full counts, each file is damaged in a third of the ways. Of the stopped server,
// only the files that a killed one lacks are damaged, and the manifest: all others have the
// same outcome in both images. With full counts, every file of both images is damaged in
// every way, and further bits are inverted, which must have an allowed outcome.
func TestFaults_NoDamageIsSilent(t *testing.T) {
	if soak.Race {
		t.Skip("opens directories in other processes, which gain nothing from the race detector")
	}
	var lines, skipped []string
	for _, name := range []string{"killed", "stopped"} {
		dir := filepath.Join(t.TempDir(), "image")
		makeImage(t, dir, name == "stopped")
		m := &matrix{t: t, image: dir, name: name, skipped: skipped, outcomes: map[string]string{}}
		m.run()
		for _, key := range slices.Sorted(maps.Keys(m.outcomes)) {
			lines = append(lines, key+": "+m.outcomes[key])
		}
		if name == "killed" && !soak.Full() && !*rewrite {
			skipped = slices.DeleteFunc(m.files(), func(path string) bool { return filepath.Base(path) == "MANIFEST" })
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	const golden = "testdata/faults.golden"
	if *rewrite {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(golden, []byte(got), 0o644)); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	expected := onlyCases(string(want), got)
	if got != expected {
		t.Errorf("outcomes differ from %s: run with -rewrite and review them\n%s", golden, difference(expected, got))
	}
}

// onlyCases returns the lines of the golden file about the cases of other lines, and about
// files of the killed server that these lack. With full counts it returns all lines.
func onlyCases(golden, lines string) string {
	if soak.Full() {
		return golden
	}
	played := map[string]bool{} // cases, and files with their image
	for line := range strings.Lines(lines) {
		name, file := caseOf(line)
		played[name], played[file] = true, true
	}
	var b strings.Builder
	for line := range strings.Lines(golden) {
		name, file := caseOf(line)
		if played[name] || strings.HasPrefix(file, "killed ") && !played[file] {
			b.WriteString(line)
		}
	}
	return b.String()
}

// caseOf returns the case of a golden line, and its image and file.
func caseOf(line string) (name, file string) {
	name, _, _ = strings.Cut(line, ": ")
	words := strings.Fields(name)
	return name, words[0] + " " + words[1]
}

// difference lists the lines that only one of two texts has.
func difference(want, got string) string {
	var b strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range w {
		if !slices.Contains(g, line) {
			b.WriteString("- " + line + "\n")
		}
	}
	for _, line := range g {
		if !slices.Contains(w, line) {
			b.WriteString("+ " + line + "\n")
		}
	}
	return b.String()
}

// makeImage writes the data directory of a server that was in use, and was stopped or
// killed.
func makeImage(t *testing.T, dir string, stopped bool) {
	t.Helper()
	live := filepath.Join(t.TempDir(), "live")
	// A long timeout, so that the server leads in one term from the beginning to the end.
	s := &testServer{dir: live, timeout: 2 * time.Second, log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := s.start()
	if err == nil {
		err = s.node.Bootstrap(raft.Server{ID: raft.ServerID(s.id), Address: "s"})
	}
	if err == nil {
		err = s.lead(ctx)
	}
	if err == nil {
		err = s.fill(ctx)
	}
	if err != nil {
		t.Fatal(errors.Join(err, s.stop()))
	}
	if !stopped {
		storagetest.CopyDir(t, live, dir)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if stopped {
		storagetest.CopyDir(t, live, dir)
	}
}

// eachExtent calls f for each part of a file that is not a hole.
func eachExtent(file *os.File, f func(start, end int64) error) error {
	for at := int64(0); ; {
		start, err := unix.Seek(int(file.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(int(file.Fd()), start, unix.SEEK_HOLE)
		if err == nil {
			err = f(start, end)
		}
		if err != nil {
			return err
		}
		at = end
	}
}

// contentSize returns the size of a file without the zeros at its end. Journals are
// preallocated.
func contentSize(path string) (size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	err = eachExtent(file, func(start, end int64) error {
		b := make([]byte, end-start)
		if _, err := file.ReadAt(b, start); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n := len(strings.TrimRight(string(b), "\x00")); n > 0 {
			size = start + int64(n)
		}
		return nil
	})
	return size, err
}

// A fault damages one file.
type fault struct {
	name   string
	golden bool // its outcome is in the golden file
	apply  func(path string, size int64) error
}

func faults() []fault {
	list := []fault{
		{"removed", true, func(path string, _ int64) error { return os.Remove(path) }},
		{"truncated to 0", true, func(path string, _ int64) error { return os.Truncate(path, 0) }},
		{"truncated to half", true, func(path string, size int64) error { return os.Truncate(path, size/2) }},
		{"zeroed", true, func(path string, _ int64) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return errors.Join(os.Truncate(path, 0), os.Truncate(path, info.Size()))
		}},
		{"bit flipped in the middle", true, flip(1, 2)},
		{"replaced by a directory", true, func(path string, _ int64) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }},
	}
	// A table of the store has its index at the end, modules before it, and records between.
	list = append(list, fault{"bit flipped near the end", true, flip(35, 40)})
	if soak.Full() {
		for i := range int64(41) {
			list = append(list, fault{fmt.Sprintf("bit flipped at %d/40", i), false, flip(i, 40)})
		}
	}
	return list
}

// flip inverts one bit at a fraction of the content.
func flip(part, of int64) func(string, int64) error {
	return func(path string, size int64) error {
		if size == 0 {
			return nil
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		at := min(size*part/of, size-1)
		b := make([]byte, 1)
		_, err = file.ReadAt(b, at)
		b[0] ^= 1 << (at % 8)
		if err == nil {
			_, err = file.WriteAt(b, at)
		}
		return errors.Join(err, file.Close())
	}
}

// matrix opens an image with each file damaged in each way.
type matrix struct {
	t       *testing.T
	image   string
	name    string
	skipped []string // files that are not damaged
	healthy result

	mu       sync.Mutex
	outcomes map[string]string
}

// A damagedCase is one cell of the matrix.
type damagedCase struct {
	path  string // relative; "" for none
	fault fault
}

func (m *matrix) run() {
	m.t.Helper()
	c := &child{t: m.t}
	m.healthy = c.open(m.prepare(damagedCase{}).dir)
	c.close()
	if h := m.healthy; h.Refused+h.Error != "" || h.findings() || h.Modules == "" || !strings.HasPrefix(h.History, "60 records") {
		m.t.Fatalf("intact %s server: %+v", m.name, h)
	}
	cases := make(chan damagedCase)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			c := &child{t: m.t}
			defer c.close()
			for one := range cases {
				d := m.prepare(one)
				r := c.open(d.dir)
				r.dir, d.result = d.dir, &r
				m.record(one, d)
				_ = os.RemoveAll(d.dir)
			}
		})
	}
	for i, path := range m.files() {
		if slices.ContainsFunc(m.skipped, func(s string) bool { return normalName(s) == normalName(path) }) {
			continue
		}
		for j, f := range faults() {
			if soak.Full() || *rewrite || (i+j)%3 == 0 || f.name == "replaced by a directory" {
				cases <- damagedCase{path, f}
			}
		}
	}
	close(cases)
	workers.Wait()
}

// files returns the relative paths of all files of the image.
func (m *matrix) files() (list []string) {
	m.t.Helper()
	err := filepath.WalkDir(m.image, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, strings.TrimPrefix(path, m.image+"/"))
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return list
}

// prepare copies the image and damages a file in the copy.
func (m *matrix) prepare(c damagedCase) *damage {
	dir, err := os.MkdirTemp(m.t.TempDir(), "")
	d := &damage{image: m.image, dir: dir, path: c.path}
	if err != nil {
		m.t.Error(err)
		return d
	}
	storagetest.CopyDir(m.t, m.image, dir)
	if c.path == "" {
		return d
	}
	path := filepath.Join(dir, c.path)
	size, err := contentSize(path)
	d.before = readContent(m.t, path, size)
	if err == nil {
		err = c.fault.apply(path, size)
	}
	if err != nil {
		m.t.Errorf("%s %s: %v", c.path, c.fault.name, err)
	}
	d.after = readContent(m.t, path, size)
	return d
}

// snapshotName matches the term and the time in the name of a snapshot, which vary.
var snapshotName = regexp.MustCompile(`snapshots/\d+-(\d+)-\d+`)

// normalName returns a path without what varies.
func normalName(path string) string { return snapshotName.ReplaceAllString(path, "snapshots/$1") }

// record adds an outcome to the golden lines, and fails the test if it is not allowed.
func (m *matrix) record(c damagedCase, d *damage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprintf("%s %s %s", m.name, normalName(c.path), c.fault.name)
	got, ok := m.outcome(d)
	if c.fault.golden {
		m.outcomes[key] = got
	}
	if !ok {
		m.t.Errorf("%s: %s\n%+v", key, got, *d.result)
	}
}

// outcome returns what became of damage to a file, and whether that is allowed:
//
//   - refused, with an error that names the file or its part and has a remedy, and doctor
//     reports damage;
//   - the server has the same state, and a log line or the error of a later read names the
//     damage;
//   - without effect: state, modules and history are the same, for one of the reasons.
func (m *matrix) outcome(d *damage) (text string, ok bool) {
	h, r, path := &m.healthy, d.result, d.path
	doctorText := ""
	if r.findings() {
		doctorText = ", doctor reports it"
	}
	switch {
	case r.Error != "":
		return "failed: " + r.Error, false
	case r.Refused != "":
		return "refused" + doctorText, r.namedIn(r.Refused, path) && r.Remedy != "" && r.findings()
	case r.State != h.State || r.ID != h.ID:
		return "SILENT DIFFERENCE of the state", false
	}
	text, ok = "started", true
	switch {
	case r.namedIn(r.Log, path):
		text += ", and the log names it"
	case r.Modules == h.Modules && r.History == h.History:
		text, ok = d.harmless()
	}
	for _, part := range []struct{ name, got, want string }{{"modules", r.Modules, h.Modules}, {"history", r.History, h.History}} {
		switch {
		case part.got == part.want:
		case strings.HasPrefix(part.got, "error: "):
			text += ", reading " + part.name + " returns an error"
		case r.namedIn(r.Log, path):
			text += ", and parts of the " + part.name + " are lost"
		default:
			text, ok = text+", SILENT DIFFERENCE of the "+part.name, false
		}
	}
	return text + doctorText, ok
}

// namedIn reports whether a text names a file or its directory.
func (r *result) namedIn(text, path string) bool {
	for _, one := range []string{path, filepath.Dir(path)} {
		if one != "." && strings.Contains(text, r.dir+"/"+one) {
			return true
		}
	}
	return false
}

// A child is a process that opens directories one after the other. It is started again if
// it dies.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err *strings.Builder
}

func (c *child) start() {
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), childVariable+"=1")
	c.err = &strings.Builder{}
	c.cmd.Stderr = c.err
	in, inErr := c.cmd.StdinPipe()
	out, outErr := c.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, c.cmd.Start()); err != nil {
		c.t.Error(err)
		return
	}
	c.in, c.out = in, bufio.NewReader(out)
}

// hangTimeout is how long one directory may take before it counts as a hang.
const hangTimeout = 90 * time.Second

// open examines a directory in the child.
func (c *child) open(dir string) (r result) {
	if c.cmd == nil {
		c.start()
	}
	request, _ := json.Marshal(dir)
	if _, err := c.in.Write(append(request, '\n')); err != nil {
		return result{Error: "child: " + err.Error()}
	}
	killed := time.AfterFunc(hangTimeout, func() { _ = c.cmd.Process.Kill() })
	line, err := c.out.ReadBytes('\n')
	if !killed.Stop() {
		err = errors.New("hung")
	}
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		c.close()
		return result{Error: fmt.Sprintf("process died: %v\n%.3000s", err, c.err.String())}
	}
	return r
}

// close ends the child.
func (c *child) close() {
	if c.cmd == nil {
		return
	}
	_ = c.in.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	c.cmd = nil
}
