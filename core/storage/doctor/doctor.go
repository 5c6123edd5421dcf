package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/history"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/snapshot"
)

// Doctor looks at the data directory of a server that is stopped: every entry,
// every snapshot, every module, every record. It changes nothing there; what
// must be opened to be read is copied to the folder for temporary files.
//
// The error is that it could not look: ErrLocked while a server runs. What is
// wrong with the directory is in the report.
func Run(ctx context.Context, dir string) (report *Report, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: it is no directory", dir)
	}
	d := &examiner{layout: datadir.Layout{Dir: dir}, report: &Report{Dir: dir, Snapshots: []SnapshotReport{}, Blobs: []BlobReport{}, Findings: []Finding{}}}
	lock, err := datadir.AcquireReadLock(d.layout)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	for _, look := range []func() error{d.checkLayout, d.checkLog, d.checkServerID, d.checkSnapshots, d.checkStore} {
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

type examiner struct {
	layout       datadir.Layout
	report       *Report
	first, floor uint64 // of the log, where it could be read
	hasLog       bool   // there is a log
	logReadable  bool   // it could be read
}

// addDamage reports an error of ours as a finding.
func (d *examiner) addDamage(err error) {
	f := Finding{Severity: Damage, Problem: err.Error()}
	if e, ok := errors.AsType[*datadir.DamageError](err); ok {
		f = Finding{Severity: Damage, Part: e.Part, Where: e.Path, Problem: e.Problem, Remedy: e.Remedy}
		if e.Err != nil {
			f.Problem += ": " + e.Err.Error()
		}
	}
	d.report.add(f)
}

// checkLayout is about the files that lie there.
func (d *examiner) checkLayout() error {
	entries, err := os.ReadDir(d.layout.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !d.layout.Owns(e.Name()) {
			d.report.add(Finding{Severity: Info, Part: "layout", Where: filepath.Join(d.layout.Dir, e.Name()), Problem: "this is not the storage's"})
		}
	}
	_, err = os.Stat(d.layout.Log())
	d.hasLog = err == nil
	d.report.NodeID, err = datadir.ReadServerID(d.layout)
	return err
}

// checkServerID is about the server's id, which a log makes no sense without.
func (d *examiner) checkServerID() error {
	if l := d.report.Log; d.report.NodeID == "" && d.hasLog && (l == nil || l.Last > 0) {
		d.report.add(Finding{
			Severity: Damage, Part: "server's id", Where: d.layout.NodeID(), Problem: "it is missing, and its log is there", Remedy: datadir.ServerIDRemedy(nil),
		})
	}
	return nil
}

// checkLog reads every entry.
func (d *examiner) checkLog() error {
	if !d.hasLog {
		mark, _, err := raftlog.ReadGuard(d.layout.RollbackGuard())
		switch {
		case errors.Is(err, fs.ErrNotExist) && d.report.NodeID != "":
			_, _, err := raftlog.Prepare(d.layout)
			return d.damageOrError(err)
		case err == nil && mark.Seq > 0:
			d.addDamage(raftlog.Damage(d.layout, fmt.Sprintf("it is missing, and once held entries up to %d", mark.Last), nil))
		default:
			d.report.add(Finding{Severity: Info, Part: "raft log", Where: d.layout.Log(), Problem: "there is none yet"})
		}
		return nil
	}
	mark, vouched, err := raftlog.Prepare(d.layout)
	if err != nil {
		return d.damageOrError(err)
	}
	if vouched {
		d.report.add(Finding{Severity: Warning, Part: "side file of the raft log", Where: d.layout.RollbackGuard(), Problem: "it is empty: the log will be taken as it stands"})
	}
	if !d.checkTables("raft log", d.layout.Log(), datadir.RemedyRejoin) {
		return nil
	}
	err = badgerdb.WithCopy(d.layout.Log(), func(db *badger.DB) error {
		v, err := raftlog.Verify(db, mark, vouched, -1)
		if err != nil {
			return raftlog.Damage(d.layout, "it cannot be read", err)
		}
		if v.Newer != nil {
			d.addDamage(raftlog.Damage(d.layout, "it cannot be read", v.Newer))
		}
		for _, p := range v.Problems {
			d.addDamage(raftlog.Damage(d.layout, p, nil))
		}
		if len(v.Orphans) > 0 && len(v.Problems) == 0 {
			d.report.add(Finding{Severity: Info, Part: "raft log", Where: d.layout.Log(), Problem: fmt.Sprintf("%d deleted entries are still to leave the disk", len(v.Orphans))})
		}
		s := v.State
		d.first, d.floor, d.logReadable = s.First, s.Floor, true
		d.report.Log = &LogReport{
			First: s.First, Last: s.Last, Term: s.LastTerm, Commit: s.Commit, Writes: s.Seq, Checked: v.Checked, Bytes: disk.Usage(d.layout.Log()),
		}
		return nil
	}, func(err error) error {
		return badgerdb.OpenError("raft log", d.layout.Log(), datadir.RemedyRejoin, err)
	})
	return d.damageOrError(err)
}

// checkTables reads every table whole, what was deleted and waits to leave it
// included; false when one of them would keep the rest from being opened.
func (d *examiner) checkTables(part, dir, remedy string) bool {
	for _, err := range badgerdb.CheckTables(dir, true) {
		d.addDamage(badgerdb.OpenError(part, dir, remedy, err))
	}
	return len(badgerdb.CheckTables(dir, false)) == 0
}

// damageOrError takes damage as a finding, and hands on what kept us from looking.
func (d *examiner) damageOrError(err error) error {
	if _, ok := errors.AsType[*datadir.DamageError](err); ok {
		d.addDamage(err)
		return nil
	}
	return err
}

// checkSnapshots reads every byte of them.
func (d *examiner) checkSnapshots() error {
	list, err := snapshot.List(d.layout, true)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Unfinished || s.Remnant {
			what := "it was left half-written; the next start deletes it"
			if s.Remnant {
				what = "it was left half-deleted, when newer ones were there; the next start deletes it"
			}
			d.report.add(Finding{Severity: Info, Part: "snapshot", Where: s.Path, Problem: what})
			continue
		}
		d.report.Snapshots = append(d.report.Snapshots, SnapshotReport{s.ID, s.Index, s.Term, s.Size, s.Problem == nil})
		if s.Problem != nil {
			d.addDamage(snapshot.Damage(s.Problem))
		}
	}
	if !d.logReadable {
		return nil
	}
	err = snapshot.CheckCoverage(d.layout, list, d.first, d.floor)
	if e, ok := errors.AsType[*datadir.DamageError](err); ok && e.Err == nil { // else it was told already
		d.addDamage(e)
	}
	return nil
}

// checkStore reads every module and every record.
func (d *examiner) checkStore() error {
	if _, err := os.Stat(d.layout.Store()); errors.Is(err, fs.ErrNotExist) {
		d.report.add(Finding{Severity: Info, Part: "policy modules and history", Where: d.layout.Store(), Problem: "there are none yet"})
		return nil
	}
	damage := func(what string, err error) error {
		return &datadir.DamageError{Part: "policy modules and history", Path: d.layout.Store(), Problem: what, Remedy: datadir.RemedyStore, Err: err}
	}
	if badgerdb.ManifestMissing(d.layout.Store()) {
		d.addDamage(damage("its MANIFEST is missing", nil))
		return nil
	}
	if !d.checkTables("policy modules and history", d.layout.Store(), datadir.RemedyStore) {
		return nil
	}
	err := badgerdb.WithCopy(d.layout.Store(), func(db *badger.DB) error {
		s := &kvstore.Store{Layout: d.layout, DB: db, Logger: slog.New(slog.DiscardHandler)}
		if err := d.checkBlobs(blob.New(s)); err != nil {
			return damage("the modules cannot be listed", err)
		}
		if err := d.checkHistory(s); err != nil {
			return damage("the history cannot be read", err)
		}
		return nil
	}, func(err error) error {
		return badgerdb.OpenError("policy modules and history", d.layout.Store(), datadir.RemedyStore, err)
	})
	return d.damageOrError(err)
}

func (d *examiner) checkBlobs(b *blob.Store) error {
	list, err := b.List()
	if err != nil {
		return err
	}
	for _, blob := range list {
		r := BlobReport{Digest: blob.Digest, Bytes: blob.Size, Finished: blob.Finished}
		if blob.Finished {
			_, err := b.Get(blob.Digest)
			if r.Whole = err == nil; err != nil {
				d.addDamage(err)
			}
		} else {
			d.report.add(Finding{Severity: Info, Part: "policy module", Where: d.layout.Store(), Problem: blob.Digest + " was never finished"})
		}
		d.report.Blobs = append(d.report.Blobs, r)
	}
	return nil
}

func (d *examiner) checkHistory(s *kvstore.Store) error {
	h, err := history.OpenReadOnly(s)
	if err != nil {
		return err
	}
	stats := h.Stats()
	r := &HistoryReport{Records: stats.Records, Bytes: stats.Bytes, First: stats.First.Index, Last: stats.Last.Index}
	d.report.History = r
	count, q := int64(0), history.Query{Limit: 1000}
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
			d.addDamage(err)
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
			Problem: fmt.Sprintf("%d records are there, and %d by its accounts: some were lost, as a power cut may lose the last", count, stats.Records),
		})
	}
	return nil
}
