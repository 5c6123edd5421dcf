package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// Doctor looks at the data directory of a server that is stopped: every entry,
// every snapshot, every module, every record. It changes nothing there; what
// must be opened to be read is copied to the folder for temporary files.
//
// The error is that it could not look: ErrLocked while a server runs. What is
// wrong with the directory is in the report.
func Doctor(ctx context.Context, dir string) (report *Report, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: it is no directory", dir)
	}
	d := &doctor{layout: Layout{dir}, report: &Report{Dir: dir, Snapshots: []SnapshotReport{}, Blobs: []BlobReport{}, Findings: []Finding{}}}
	lock, err := borrowLock(d.layout)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.unlock()) }()
	for _, look := range []func() error{d.looksAround, d.looksAtLog, d.looksAtID, d.looksAtSnapshots, d.looksAtStore} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := look(); err != nil {
			return nil, err
		}
	}
	order := []Severity{Damage, Warning, Info}
	slices.SortStableFunc(d.report.Findings, func(a, b Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return d.report, nil
}

type doctor struct {
	layout       Layout
	report       *Report
	first, floor uint64 // of the log, where it could be read
	begun        bool   // there is a log
	known        bool   // it could be read
}

// damaged reports an error of ours as a finding.
func (d *doctor) damaged(err error) {
	f := Finding{Severity: Damage, What: err.Error()}
	if e, ok := errors.AsType[*DamageError](err); ok {
		f = Finding{Severity: Damage, Part: e.Part, Where: e.Path, What: e.What, Remedy: e.Remedy}
		if e.Err != nil {
			f.What += ": " + e.Err.Error()
		}
	}
	d.report.add(f)
}

// looksAround is about the files that lie there.
func (d *doctor) looksAround() error {
	entries, err := os.ReadDir(d.layout.Dir)
	if err != nil {
		return err
	}
	ours := []string{lockName, nodeIDName, clusterIDName, raftName, storeName, "compiled"} // the last is others'
	for _, e := range entries {
		if !slices.Contains(ours, e.Name()) {
			d.report.add(Finding{Severity: Info, Part: "layout", Where: filepath.Join(d.layout.Dir, e.Name()), What: "this is not the storage's"})
		}
	}
	_, err = os.Stat(d.layout.Log())
	d.begun = err == nil
	d.report.NodeID, err = readID(d.layout)
	return err
}

// looksAtID is about the server's id, which a log makes no sense without.
func (d *doctor) looksAtID() error {
	if l := d.report.Log; d.report.NodeID == "" && d.begun && (l == nil || l.Last > 0) {
		d.report.add(Finding{
			Severity: Damage, Part: "server's id", Where: d.layout.NodeID(), What: "it is missing, and its log is there", Remedy: remedyID(nil),
		})
	}
	return nil
}

// looksAtLog reads every entry.
func (d *doctor) looksAtLog() error {
	if !d.begun {
		mark, _, err := readTail(d.layout.Tail())
		switch {
		case errors.Is(err, fs.ErrNotExist) && d.report.NodeID != "":
			_, _, err := prepareLog(d.layout)
			return d.orFail(err)
		case err == nil && mark.seq > 0:
			d.damaged(logDamage(d.layout, fmt.Sprintf("it is missing, and once held entries up to %d", mark.last), nil))
		default:
			d.report.add(Finding{Severity: Info, Part: "raft log", Where: d.layout.Log(), What: "there is none yet"})
		}
		return nil
	}
	mark, vouched, err := prepareLog(d.layout)
	if err != nil {
		return d.orFail(err)
	}
	if vouched {
		d.report.add(Finding{Severity: Warning, Part: "side file of the raft log", Where: d.layout.Tail(), What: "it is empty: the log will be taken as it stands"})
	}
	if !d.checkTables("raft log", d.layout.Log(), remedyRejoin) {
		return nil
	}
	err = withShadow(d.layout.Log(), func(db *badger.DB) error {
		v, err := verifyLog(db, mark, vouched, -1)
		if err != nil {
			return logDamage(d.layout, "it cannot be read", err)
		}
		if v.newer != nil {
			d.damaged(logDamage(d.layout, "it cannot be read", v.newer))
		}
		for _, p := range v.problems {
			d.damaged(logDamage(d.layout, p, nil))
		}
		if len(v.orphans) > 0 && len(v.problems) == 0 {
			d.report.add(Finding{Severity: Info, Part: "raft log", Where: d.layout.Log(), What: fmt.Sprintf("%d deleted entries are still to leave the disk", len(v.orphans))})
		}
		s := v.state
		d.first, d.floor, d.known = s.first, s.floor, true
		d.report.Log = &LogReport{
			First: s.first, Last: s.last, Term: s.lastTerm, Commit: s.commit, Writes: s.seq, Checked: v.checked, Bytes: usage(d.layout.Log()),
		}
		return nil
	}, func(err error) error { return engineError("raft log", d.layout.Log(), remedyRejoin, err) })
	return d.orFail(err)
}

// checkTables reads every table whole, what was deleted and waits to leave it
// included; false when one of them would keep the rest from being opened.
func (d *doctor) checkTables(part, dir, remedy string) bool {
	for _, err := range checkEngine(dir, true) {
		d.damaged(engineError(part, dir, remedy, err))
	}
	return len(checkEngine(dir, false)) == 0
}

// orFail takes damage as a finding, and hands on what kept us from looking.
func (d *doctor) orFail(err error) error {
	if _, ok := errors.AsType[*DamageError](err); ok {
		d.damaged(err)
		return nil
	}
	return err
}

// looksAtSnapshots reads every byte of them.
func (d *doctor) looksAtSnapshots() error {
	list, err := ListSnapshots(d.layout, true)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Unfinished || s.Remains {
			what := "it was left half-written; the next start deletes it"
			if s.Remains {
				what = "it was left half-deleted, when newer ones were there; the next start deletes it"
			}
			d.report.add(Finding{Severity: Info, Part: "snapshot", Where: s.Path, What: what})
			continue
		}
		d.report.Snapshots = append(d.report.Snapshots, SnapshotReport{s.ID, s.Index, s.Term, s.Size, s.Problem == nil})
		if s.Problem != nil {
			d.damaged(snapshotDamage(s.Problem))
		}
	}
	if !d.known {
		return nil
	}
	err = checkCover(d.layout, list, d.first, d.floor)
	if e, ok := errors.AsType[*DamageError](err); ok && e.Err == nil { // else it was told already
		d.damaged(e)
	}
	return nil
}

// looksAtStore reads every module and every record.
func (d *doctor) looksAtStore() error {
	if _, err := os.Stat(d.layout.Store()); errors.Is(err, fs.ErrNotExist) {
		d.report.add(Finding{Severity: Info, Part: "policy modules and history", Where: d.layout.Store(), What: "there are none yet"})
		return nil
	}
	damage := func(what string, err error) error {
		return &DamageError{Part: "policy modules and history", Path: d.layout.Store(), What: what, Remedy: remedyStore, Err: err}
	}
	if lostManifest(d.layout.Store()) {
		d.damaged(damage("its MANIFEST is missing", nil))
		return nil
	}
	if !d.checkTables("policy modules and history", d.layout.Store(), remedyStore) {
		return nil
	}
	err := withShadow(d.layout.Store(), func(db *badger.DB) error {
		s := &shelf{layout: d.layout, db: db, log: discard(nil)}
		if err := d.looksAtBlobs(&Blobs{s}); err != nil {
			return damage("the modules cannot be listed", err)
		}
		if err := d.looksAtHistory(s); err != nil {
			return damage("the history cannot be read", err)
		}
		return nil
	}, func(err error) error {
		return engineError("policy modules and history", d.layout.Store(), remedyStore, err)
	})
	return d.orFail(err)
}

func (d *doctor) looksAtBlobs(b *Blobs) error {
	list, err := b.List()
	if err != nil {
		return err
	}
	for _, blob := range list {
		r := BlobReport{Digest: blob.Digest, Bytes: blob.Size, Finished: blob.Finished}
		if blob.Finished {
			_, err := b.Get(blob.Digest)
			if r.Whole = err == nil; err != nil {
				d.damaged(err)
			}
		} else {
			d.report.add(Finding{Severity: Info, Part: "policy module", Where: d.layout.Store(), What: blob.Digest + " was never finished"})
		}
		d.report.Blobs = append(d.report.Blobs, r)
	}
	return nil
}

func (d *doctor) looksAtHistory(s *shelf) error {
	h := &History{cfg: HistoryConfig{}.filled(), shelf: s}
	if err := h.load(); err != nil {
		return err
	}
	stats := h.Stats()
	r := &HistoryReport{Records: stats.Records, Bytes: stats.Bytes, First: stats.First.Index, Last: stats.Last.Index}
	d.report.History = r
	count, q := int64(0), Query{Limit: 1000}
	for {
		list, err := h.List(q)
		for i := range list {
			if at := list[i].Time; r.Oldest == nil || at.Before(*r.Oldest) {
				r.Oldest = &at
			}
			if at := list[i].Time; r.Newest == nil || at.After(*r.Newest) {
				r.Newest = &at
			}
		}
		count += int64(len(list))
		if err != nil {
			d.damaged(err)
			return nil
		}
		if len(list) < q.Limit {
			break
		}
		q.After = &list[len(list)-1]
	}
	if count != stats.Records {
		d.report.add(Finding{
			Severity: Warning, Part: "history", Where: d.layout.Store(),
			What: fmt.Sprintf("%d records are there, and %d by its accounts: some were lost, as a power cut may lose the last", count, stats.Records),
		})
	}
	return nil
}
