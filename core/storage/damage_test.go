package storage_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/internal/checkedfile"
	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/doctor"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/snapshot"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

// closedLog returns the data directory of a stopped server, with its entries in a table.
// crashedLog returns that of a killed server, whose entries are in a journal.
func closedLog(t testing.TB) string { return logImage(t, true) }

func crashedLog(t testing.TB) string { return logImage(t, false) }

const imageEntries = 2000

func logImage(t testing.TB, closed bool) string {
	t.Helper()
	from, to := t.TempDir(), t.TempDir()
	l := storagetest.OpenLog(t, from)
	if err := l.SetUint64([]byte("CurrentTerm"), 3); err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= imageEntries; i += 100 {
		batch := storagetest.Entries(i, i+99, 1+i/800)
		for _, e := range batch {
			e.Data = append(e.Data, storagetest.RandomBytes(500, e.Index)...)
		}
		if err := l.StoreLogs(batch); err != nil {
			t.Fatal(err)
		}
	}
	giant := storagetest.Entry(imageEntries+1, 3)
	giant.Data = storagetest.RandomBytes(2<<20, 1) // large enough for the value log
	if err := l.StoreLog(giant); err != nil {
		t.Fatal(err)
	}
	if closed {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	storagetest.CopyDir(t, from, to)
	return to
}

// one returns the last file that matches the pattern.
func one(t testing.TB, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return found[len(found)-1]
}

// held returns the content of a file without trailing zeros. Journals are preallocated and
// end with a long hole.
func held(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	block := make([]byte, 1<<16)
	for at := disk.NextData(f, 0, info.Size()); at < info.Size(); at = disk.NextData(f, at, info.Size()) {
		n, _ := f.ReadAt(block, at)
		b = append(b, make([]byte, at-int64(len(b)))...)
		b = append(b, block[:n]...)
		at += int64(n)
	}
	end := len(b)
	for end > 0 && b[end-1] == 0 {
		end--
	}
	return b[:end]
}

// flip inverts bits in four bytes at the given fraction of the content.
func flip(t testing.TB, path string, part float64) {
	t.Helper()
	b := held(t, path)
	at := int(float64(len(b)-8) * part)
	for i := range 4 {
		b[at+i] ^= 0xa5
	}
	overwrite(t, path, b[at:at+4], int64(at))
}

// overwrite changes bytes of a file in place.
func overwrite(t testing.TB, path string, b []byte, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, at)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// cut truncates a file to the given fraction of its content.
func cut(t testing.TB, path string, part float64) {
	t.Helper()
	if err := os.Truncate(path, int64(float64(len(held(t, path)))*part)); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// fingerprint returns a hash over names, sizes and contents of a tree.
func fingerprint(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Size())
		_, _ = h.Write(held(t, path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A server must not start with less than it has acknowledged: it refuses the directory and
// names the damage and the remedy. Doctor reports the same, and neither changes the
// directory.
func TestOpen_RefusesDamageWithRemedy(t *testing.T) {
	closed, crashed := closedLog(t), crashedLog(t)
	for _, c := range []struct {
		name   string
		image  string
		damage func(t *testing.T, dir string)
	}{
		{"table: bytes flipped near its start", closed, func(t *testing.T, dir string) { flip(t, one(t, dir, "raft/log/*.sst"), 0.05) }},
		{"table: bytes flipped in the middle", closed, func(t *testing.T, dir string) { flip(t, one(t, dir, "raft/log/*.sst"), 0.5) }},
		{"table: bytes flipped in its index", closed, func(t *testing.T, dir string) { flip(t, one(t, dir, "raft/log/*.sst"), 0.995) }},
		{"table: bytes flipped at its end", closed, func(t *testing.T, dir string) { flip(t, one(t, dir, "raft/log/*.sst"), 1) }},
		{"table: cut short", closed, func(t *testing.T, dir string) { cut(t, one(t, dir, "raft/log/*.sst"), 0.6) }},
		{"table: zeroed", closed, func(t *testing.T, dir string) {
			path := one(t, dir, "raft/log/*.sst")
			write(t, path, make([]byte, len(held(t, path))))
		}},
		{"table: missing", closed, func(t *testing.T, dir string) { remove(t, one(t, dir, "raft/log/*.sst")) }},
		{"value log: bytes flipped", closed, func(t *testing.T, dir string) { flip(t, one(t, dir, "raft/log/*1.vlog"), 0.5) }},
		{"value log: missing", closed, func(t *testing.T, dir string) { remove(t, one(t, dir, "raft/log/*1.vlog")) }},
		{"manifest: missing", closed, func(t *testing.T, dir string) { remove(t, one(t, dir, "raft/log/MANIFEST")) }},
		{"manifest: bytes flipped", closed, func(t *testing.T, dir string) { flip(t, one(t, dir, "raft/log/MANIFEST"), 0.5) }},
		{"log: missing", closed, func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "raft/log")) }},
		{"log: emptied", closed, func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, "raft/log"))
			if err := os.Mkdir(filepath.Join(dir, "raft/log"), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"log: rolled back", closed, func(t *testing.T, dir string) {
			older := t.TempDir()
			storagetest.CopyDir(t, dir, older)
			l := storagetest.OpenLog(t, dir)
			if err := l.SetUint64([]byte("CurrentTerm"), 4); err != nil { // a vote is enough
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			remove(t, filepath.Join(dir, "raft/log"))
			storagetest.CopyDir(t, filepath.Join(older, "raft/log"), filepath.Join(dir, "raft/log"))
		}},
		{"rollback guard: missing", closed, func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "raft/tail")) }},
		{"rollback guard: both marks damaged", closed, func(t *testing.T, dir string) { write(t, filepath.Join(dir, "raft/tail"), make([]byte, 1024)) }},
		{"journal: bytes flipped in the middle", crashed, func(t *testing.T, dir string) { flip(t, one(t, dir, "raft/log/*.mem"), 0.5) }},
		{"journal: bytes flipped at its head", crashed, func(t *testing.T, dir string) { flip(t, one(t, dir, "raft/log/*.mem"), 0) }},
		{"journal: cut short", crashed, func(t *testing.T, dir string) { cut(t, one(t, dir, "raft/log/*.mem"), 0.9) }},
		{"journal: missing", crashed, func(t *testing.T, dir string) { remove(t, one(t, dir, "raft/log/*.mem")) }},
		{"journal: emptied", crashed, func(t *testing.T, dir string) { cut(t, one(t, dir, "raft/log/*.mem"), 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			storagetest.CopyDir(t, c.image, dir)
			c.damage(t, dir)
			before := fingerprint(t, dir)
			if out := run(t, "doctor", dir); !strings.HasPrefix(out, "damaged true") {
				t.Errorf("doctor: %.1500s", out)
			}
			if fingerprint(t, dir) != before {
				t.Error("doctor changed the directory")
			}
			out := run(t, "open", dir)
			if !strings.HasPrefix(out, "refused true") || !strings.Contains(out, "move the whole data directory aside") {
				t.Errorf("open: child printed %.1500s", out)
			}
			if fingerprint(t, dir) != before {
				t.Error("refused directory was changed")
			}
		})
	}
}

// The remainders of a crash are not damage: the end of a journal that was never
// acknowledged, empty files, and one torn mark of the guard.
func TestOpen_AcceptsRemaindersOfCrash(t *testing.T) {
	crashed := crashedLog(t)
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
	}{
		{"nothing", func(*testing.T, string) {}},
		{"torn end of the journal", func(t *testing.T, dir string) {
			path := one(t, dir, "raft/log/*.mem")
			overwrite(t, path, storagetest.RandomBytes(3000, 1), int64(len(held(t, path))+8))
		}},
		{"empty journal", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "raft/log/00099.mem"), nil) }},
		{"empty value log", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "raft/log/000099.vlog"), nil) }},
		{"first mark torn", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "raft/tail"), 0.01) }},
		{"second mark torn", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "raft/tail"), 0.99) }},
		{"rollback guard emptied by the operator", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "raft/tail"), nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			storagetest.CopyDir(t, crashed, dir)
			c.damage(t, dir)
			write(t, filepath.Join(dir, "node-id"), checkedfile.Encode([]byte("server-1")))
			if report, err := doctor.Run(t.Context(), dir); err != nil || report.Damaged() || report.Log.Last != imageEntries+1 {
				t.Errorf("doctor: %+v, %v", report, err)
			}
			for range 2 {
				if out := run(t, "open", dir); out != "opened 1 2001\n" {
					t.Errorf("child printed %.1500s", out)
				}
			}
		})
	}
}

// If an entry becomes unreadable while the server runs, reading it returns an error and
// never another entry.
func TestLog_ReadVerifiesEveryEntry(t *testing.T) {
	dir := closedLog(t)
	flip(t, one(t, dir, "raft/log/*.sst"), 0.05)
	cfg := storagetest.SmallLogConfig()
	l, err := raftlog.Open(datadir.Layout{Dir: dir}, cfg)
	if err == nil {
		t.Cleanup(func() { _ = l.Close() })
		for i := uint64(1); i <= imageEntries; i++ {
			var e raft.Log
			if err := l.GetLog(i, &e); err != nil {
				return
			}
		}
		t.Error("all entries were read from a damaged table")
	}
}

// writeSnapshot writes a snapshot at index.
func writeSnapshot(t testing.TB, s *snapshot.Store, index uint64, data []byte) {
	t.Helper()
	sink, err := s.Create(1, index, 2, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}

// serverImage returns the directory of a stopped server with snapshots at 600 and 800, a
// log that starts at 701, two modules and some history.
func serverImage(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	s := storagetest.OpenStore(t, dir)
	l := s.Log()
	steps := []error{l.StoreLogs(storagetest.Entries(1, 1000, 2))}
	writeSnapshot(t, s.Snapshots(), 600, storagetest.RandomBytes(5000, 1))
	writeSnapshot(t, s.Snapshots(), 800, storagetest.RandomBytes(6000, 2))
	steps = append(steps, l.DeleteRange(1, 700))
	for i := range uint64(2) {
		data := storagetest.RandomBytes(300_000, i)
		digest := storagetest.UploadBlob(t, s.Blobs(), data, blob.MaxChunkBytes)
		steps = append(steps, s.Blobs().Finish(digest, int64(len(data))))
	}
	for i := range uint64(500) {
		steps = append(steps, s.History().Append("event", 1+i, 0, storagetest.RandomBytes(200, i)))
	}
	steps = append(steps, checkedfile.Write(s.Layout().NodeID(), []byte("server-1"), 0o600), s.Close())
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newest returns the directory of the newest snapshot in serverImage.
func newest(t testing.TB, dir string) string { return one(t, dir, "raft/snapshots/2-800-*") }

// Errors name the damaged file. The newest snapshot may only be skipped if the log reaches
// back to the previous one.
func TestSnapshots_DamageNamesFile(t *testing.T) {
	image := serverImage(t)
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
		want   string
	}{
		{"bytes flipped", func(t *testing.T, path string) { flip(t, filepath.Join(path, "state.bin"), 0.5) }, "state.bin: unusable: checksum differs from meta.json"},
		{"cut short", func(t *testing.T, path string) { cut(t, filepath.Join(path, "state.bin"), 0.5) }, "state.bin: unusable: size is 3000 bytes, meta.json expects 6000"},
		{"content missing", func(t *testing.T, path string) { remove(t, filepath.Join(path, "state.bin")) }, "state.bin: unusable: no such file"},
		{"description missing", func(t *testing.T, path string) { remove(t, filepath.Join(path, "meta.json")) }, "meta.json: unusable: no such file"},
		{"description cut short", func(t *testing.T, path string) { cut(t, filepath.Join(path, "meta.json"), 0.5) }, "meta.json: unusable: checksum differs from meta.crc32c"},
		{"description and its checksum cut short", func(t *testing.T, path string) {
			cut(t, filepath.Join(path, "meta.json"), 0.5)
			remove(t, filepath.Join(path, "meta.crc32c"))
		}, "meta.json: unusable: invalid JSON"},
		{"index changed", func(t *testing.T, path string) {
			changeDescription(t, path, `"Index":800`, `"Index":900`)
		}, "meta.json: unusable: checksum differs from meta.crc32c"},
		{"index changed, and checksum missing", func(t *testing.T, path string) {
			changeDescription(t, path, `"Index":800`, `"Index":900`)
			remove(t, filepath.Join(path, "meta.crc32c"))
		}, "with index 900 of term 2"},
		{"ID missing", func(t *testing.T, path string) {
			changeDescription(t, path, filepath.Base(path), "")
			remove(t, filepath.Join(path, "meta.crc32c"))
		}, `meta.json: unusable: it describes snapshot ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			storagetest.CopyDir(t, image, dir)
			path := newest(t, dir)
			c.damage(t, path)
			report, err := doctor.Run(t.Context(), dir)
			if err != nil || !report.Damaged() || !strings.HasSuffix(report.Findings[0].Where+": "+report.Findings[0].Problem, c.want) && !strings.Contains(report.Findings[0].Where+": "+report.Findings[0].Problem, c.want) {
				t.Errorf("doctor: %+v, %v", report, err)
			}
			_, err = storage.Open(storagetest.Config(dir))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "move the directory of that snapshot away") {
				t.Errorf("open: %v", err)
			}
			s, err := snapshot.Open(datadir.Layout{Dir: dir}, nil, snapshot.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Open(filepath.Base(path)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("read: %v", err)
			}
		})
	}
}

// changeDescription replaces a part of the description of a snapshot.
func changeDescription(t *testing.T, path, before, after string) {
	t.Helper()
	path = filepath.Join(path, "meta.json")
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), before) {
		t.Fatalf("no %s in %s, error %v", before, b, err)
	}
	write(t, path, []byte(strings.Replace(string(b), before, after, 1)))
}

// The damaged snapshot is moved aside and named in the log: its description could
// otherwise make Raft delete intact snapshots.
func TestSnapshots_FallsBackIfLogReachesPrevious(t *testing.T) {
	dir := t.TempDir()
	s := storagetest.OpenStore(t, dir)
	if err := s.Log().StoreLogs(storagetest.Entries(1, 1000, 2)); err != nil {
		t.Fatal(err)
	}
	writeSnapshot(t, s.Snapshots(), 600, storagetest.RandomBytes(5000, 1))
	writeSnapshot(t, s.Snapshots(), 800, storagetest.RandomBytes(6000, 2))
	if err := s.Log().DeleteRange(1, 500); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	flip(t, filepath.Join(newest(t, dir), "state.bin"), 0.5)
	half := filepath.Join(dir, "raft", "snapshots", "2-900-1.tmp")
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Base(newest(t, dir))
	var logged strings.Builder
	s = storagetest.OpenStore(t, dir, func(c *storage.Config) { c.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	if list, err := s.Snapshots().List(); err != nil || len(list) != 1 || list[0].Index != 600 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "raft", "damaged", damaged, "state.bin")); err != nil || !strings.Contains(logged.String(), damaged) {
		t.Errorf("damaged snapshot was not moved aside: %v\n%s", err, logged.String())
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("incomplete snapshot still exists")
	}
}

func TestOpen_RefusesLogThatNoSnapshotReaches(t *testing.T) {
	dir := t.TempDir()
	storagetest.CopyDir(t, serverImage(t), dir)
	remove(t, filepath.Join(dir, "raft", "snapshots"))
	_, err := storage.Open(storagetest.Config(dir))
	if err == nil || !strings.Contains(err.Error(), "no snapshot reaches entry 700") {
		t.Errorf("%v", err)
	}
	report, err := doctor.Run(t.Context(), dir)
	if err != nil || !report.Damaged() {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestDoctor_ReportsHealthyServer(t *testing.T) {
	dir := serverImage(t)
	before := fingerprint(t, dir)
	r, err := doctor.Run(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if fingerprint(t, dir) != before {
		t.Error("doctor changed the directory")
	}
	if len(r.Findings) > 0 || r.NodeID != "server-1" || r.Log.First != 701 || r.Log.Last != 1000 || r.Log.Checked != 300 || r.Log.Term != 2 {
		t.Errorf("%+v %+v", r, r.Log)
	}
	if len(r.Snapshots) != 2 || !r.Snapshots[0].Usable || r.Snapshots[0].Index != 800 || len(r.Blobs) != 2 || !r.Blobs[0].Whole {
		t.Errorf("%+v", r)
	}
	if r.History.Records != 500 || r.History.First != 1 || r.History.Last != 500 || r.History.Oldest == nil {
		t.Errorf("%+v", r.History)
	}
}

func TestDoctor_ReportsEachGapOnce(t *testing.T) {
	dir := t.TempDir()
	storagetest.CopyDir(t, serverImage(t), dir)
	for _, gap := range [][2]uint64{{750, 790}, {800, 800}, {990, 1000}} {
		if err := removeEntries(datadir.Layout{Dir: dir}, gap[0], gap[1]); err != nil {
			t.Fatal(err)
		}
	}
	r, err := doctor.Run(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, f := range r.Findings {
		missing = append(missing, f.Problem)
	}
	want := []string{"entries 750 to 790 are missing", "entry 800 is missing", "entries 990 to 1000 are missing"}
	if len(missing) < 3 || !slices.Equal(missing[:3], want) || len(missing) > 3 || r.Log.Checked != 300-41-1-11 {
		t.Errorf("found %q and checked %d entries", missing, r.Log.Checked)
	}
}

func TestDoctor_FindsDamageInStore(t *testing.T) {
	image := serverImage(t)
	for _, part := range []float64{0.1, 0.3, 0.5, 0.7, 0.9} {
		dir := t.TempDir()
		storagetest.CopyDir(t, image, dir)
		flip(t, one(t, dir, "store/*.sst"), part)
		r, err := doctor.Run(t.Context(), dir)
		if err != nil || !r.Damaged() {
			t.Errorf("flipped at %v: %+v, %v", part, r, err)
		}
	}
}

func TestDoctor_HandlesUnusualDirectories(t *testing.T) {
	r, err := doctor.Run(t.Context(), t.TempDir())
	if err != nil || r.Damaged() || len(r.Findings) != 2 {
		t.Errorf("empty directory: %+v, %v", r, err)
	}
	if _, err := doctor.Run(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("missing directory was accepted")
	}
	dir := t.TempDir()
	storagetest.CopyDir(t, serverImage(t), dir)
	remove(t, filepath.Join(dir, "node-id"))
	write(t, filepath.Join(dir, "notes.txt"), []byte("x"))
	r, err = doctor.Run(t.Context(), dir)
	if err != nil || !r.Damaged() || !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Part == "server ID" && f.Remedy != "" }) {
		t.Errorf("%+v, %v", r, err)
	}
}
