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
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/blob"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/history"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
	"github.com/cede-scheduler/cede/core/storage/internal/rollback"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/snapshot"
)

// Run checks the data directory of a stopped server: every entry, snapshot, module and
// record. It does not change the directory; databases are copied to a temporary directory
// before they are opened.
//
// Run returns an error only if the check itself is impossible, such as ErrLocked while
// a server runs. Damage is in the report. A check costs a pass over all files and a
// copy of their journals; ctx is read between the checks.
func Run(ctx context.Context, dir string) (report *Report, err error) {
	return RunObserved(ctx, dir, func(string, float64) {})
}

// RunObserved is like Run, and calls observe before each part with its name and the share of
// the bytes that is checked.
func RunObserved(ctx context.Context, dir string, observe func(part string, share float64)) (report *Report, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: not a directory", dir)
	}
	d := &examiner{layout: datadir.Layout{Dir: dir}, report: &Report{Dir: dir, Snapshots: []SnapshotReport{}, Blobs: []BlobReport{}, Findings: []Finding{}}}
	// An entry of the wrong type makes other checks fail before they find anything.
	if damage := datadir.CheckTypes(d.layout); len(damage) > 0 {
		for _, e := range damage {
			d.addDamage(e)
		}
		return d.report, nil
	}
	// The lock excludes a running server: its files change while they are read.
	lock, err := datadir.AcquireReadLock(d.layout)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	parts := []struct {
		name  string
		bytes int64
		check func() error
	}{
		{"layout", 0, d.checkLayout},
		{"raft log", disk.Usage(d.layout.Log()), d.checkLog},
		{"snapshots", disk.Usage(d.layout.Snapshots()), d.checkSnapshots},
		{"server ID", 0, d.checkServerID},
		{"policy modules and history", disk.Usage(d.layout.Store()), d.checkStore},
	}
	var done, total int64
	for _, part := range parts {
		total += part.bytes
	}
	for _, part := range parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		observe(part.name, float64(done)/float64(max(total, 1)))
		if err := part.check(); err != nil {
			return nil, err
		}
		done += part.bytes
	}
	// Operators read the first finding first, so damage precedes warnings.
	order := []Severity{Damage, Warning, Info}
	slices.SortStableFunc(d.report.Findings, func(a, b Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return d.report, nil
}

// examiner carries the report and the facts that later checks depend on.
type examiner struct {
	layout       datadir.Layout
	report       *Report
	first, floor uint64 // bounds of the log, if it could be read
	id           datadir.ID
	idErr        error  // of reading id
	owner        string // ID of the server that wrote the log, "" if it is not recorded
	// configurations holds those of the log and of the snapshots, newest first.
	configurations []raft.Configuration
	// Later checks are left out if an earlier one could not read what they compare
	// with: a second finding of the same damage would mislead.
	hasLog      bool // a log exists
	logReadable bool // the log could be read
}

// addDamage adds a finding for err, with part and remedy if it is a *DamageError.
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

// checkLayout reports entries that the storage does not own, and reads the server ID.
func (d *examiner) checkLayout() error {
	entries, err := os.ReadDir(d.layout.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !d.layout.Owns(e.Name()) {
			d.report.add(Finding{Severity: Info, Part: "layout", Where: filepath.Join(d.layout.Dir, e.Name()), Problem: "not created by the server"})
		}
	}
	_, err = os.Stat(d.layout.Log())
	d.hasLog = err == nil
	d.id, d.idErr = datadir.ReadServerID(d.layout)
	d.report.NodeID = d.id.Value
	if err := d.checkVersion(); err != nil {
		return err
	}
	if err := d.checkDecisionKey(); err != nil {
		return err
	}
	return d.checkClusterID()
}

// checkDecisionKey reports a key of certificates that the server refuses. A server that has
// not created one creates it at its start.
func (d *examiner) checkDecisionKey() error {
	_, err := datadir.ReadDecisionKey(d.layout)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.damageOrError(err)
}

// checkVersion reports the formats of the directory, and a version file that is damaged or
// of a later release.
func (d *examiner) checkVersion() error {
	v, err := datadir.ReadVersion(d.layout)
	if err == nil {
		d.report.Format, d.report.ClusterVersion = v.Format, v.Cluster
		err = v.Check(d.layout, 0) // see Report.CheckCluster
	}
	if d.report.Format == 1 && d.hasLog {
		d.report.add(Finding{Severity: Info, Part: "version", Where: d.layout.Version(), Problem: "does not exist: written by an earlier release, or removed"})
	}
	return d.damageOrError(err)
}

// checkClusterID reports a cluster ID that the server will not use.
func (d *examiner) checkClusterID() error {
	_, intact, err := datadir.ReadClusterID(d.layout)
	if err == nil && !intact {
		d.report.add(Finding{Severity: Warning, Part: "cluster ID", Where: d.layout.ClusterID(), Problem: "no valid checksum: the server learns it again from its log"})
	}
	return err
}

// checkServerID reports a server ID that is missing, damaged, or not confirmed by the log.
// It runs after checkSnapshots, because snapshots confirm an ID too, and because an empty
// directory needs none yet.
func (d *examiner) checkServerID() error {
	if e, ok := errors.AsType[*datadir.DamageError](d.idErr); ok {
		d.addDamage(datadir.NameMembers(e, d.configurations))
		return nil
	}
	if d.idErr != nil {
		return d.idErr
	}
	// A log that cannot be read confirms nothing, and is reported itself.
	hasEntries := len(d.report.Snapshots) > 0 || d.hasLog && (d.report.Log == nil || d.report.Log.Last > 0)
	if !d.logReadable && d.id.Value != "" {
		return nil
	}
	if err := datadir.CheckServerID(d.layout, d.id, hasEntries, d.configurations); err != nil {
		return d.damageOrError(err)
	}
	return d.damageOrError(datadir.CheckOwner(d.layout, d.id.Value, d.owner))
}

// checkLog reads every entry of the log. It adds the damage that Open would report, and
// goes on where Open would stop: the report lists all of it.
func (d *examiner) checkLog() error {
	if !d.hasLog {
		mark, _, err := rollback.Read(d.layout.RollbackGuard())
		switch {
		case errors.Is(err, fs.ErrNotExist) && d.report.NodeID != "":
			_, _, err := raftlog.Prepare(d.layout)
			return d.damageOrError(err)
		case err == nil && mark.Seq > 0:
			d.addDamage(raftlog.Damage(d.layout, fmt.Sprintf("missing, although it held entries up to %d", mark.Last), nil))
		default:
			d.report.add(Finding{Severity: Info, Part: "raft log", Where: d.layout.Log(), Problem: "does not exist yet"})
		}
		return nil
	}
	mark, vouched, err := raftlog.Prepare(d.layout)
	if err != nil {
		return d.damageOrError(err)
	}
	if vouched {
		d.report.add(Finding{Severity: Warning, Part: "rollback guard", Where: d.layout.RollbackGuard(), Problem: "empty: the log will be accepted as it is"})
	}
	if !d.checkTables("raft log", d.layout.Log(), datadir.RemedyRejoin) {
		return nil
	}
	err = badgerdb.WithCopy(d.layout.Log(), func(db *badger.DB) error {
		// -1 reads all entries; a server reads only the newest when it starts.
		v, err := raftlog.Verify(db, mark, vouched, -1)
		if err != nil {
			return raftlog.Damage(d.layout, "cannot be read", err)
		}
		if v.Newer != nil {
			d.addDamage(raftlog.Damage(d.layout, "cannot be read", v.Newer))
		}
		for _, p := range v.Problems {
			d.addDamage(raftlog.Damage(d.layout, p, nil))
		}
		if len(v.Orphans) > 0 && len(v.Problems) == 0 {
			d.report.add(Finding{Severity: Info, Part: "raft log", Where: d.layout.Log(), Problem: fmt.Sprintf("%d deleted entries are not yet removed from the disk", len(v.Orphans))})
		}
		s := v.State
		d.first, d.floor, d.owner, d.logReadable = s.First, s.Floor, v.Owner, true
		if !d.id.Checked {
			d.configurations = raftlog.Configurations(s.First, s.Last, func(index uint64, into *raft.Log) error { return raftlog.ReadEntry(db, index, into) })
		}
		d.report.Log = &LogReport{
			First: s.First, Last: s.Last, Term: s.LastTerm, Commit: s.Commit, Writes: s.Seq, Checked: v.Checked, Bytes: disk.Usage(d.layout.Log()),
		}
		return nil
	}, func(err error) error {
		return badgerdb.OpenError("raft log", d.layout.Log(), datadir.RemedyRejoin, err)
	})
	return d.damageOrError(err)
}

// checkTables reads every table completely, including deleted data that is not yet
// compacted. It returns false if a damaged index prevents opening the database.
func (d *examiner) checkTables(part, dir, remedy string) bool {
	// The second, shorter check decides whether the database can be opened: damaged blocks
	// alone do not prevent it.
	for _, err := range badgerdb.CheckTables(dir, true) {
		d.addDamage(badgerdb.OpenError(part, dir, remedy, err))
	}
	return len(badgerdb.CheckTables(dir, false)) == 0
}

// damageOrError adds err to the report if it is damage. Other errors, which prevent the
// check, are returned.
func (d *examiner) damageOrError(err error) error {
	if _, ok := errors.AsType[*datadir.DamageError](err); ok {
		d.addDamage(err)
		return nil
	}
	return err
}

// checkSnapshots reads every byte of every snapshot. A remnant or an unfinished
// snapshot is not damage: a crash leaves them in normal operation.
func (d *examiner) checkSnapshots() error {
	list, err := snapshot.List(d.layout, true)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Unfinished || s.Remnant {
			what := "incomplete; the next start deletes it"
			if s.Remnant {
				what = "partly deleted after newer snapshots were written; the next start deletes it"
			}
			d.report.add(Finding{Severity: Info, Part: "snapshot", Where: s.Path, Problem: what})
			continue
		}
		d.report.Snapshots = append(d.report.Snapshots, SnapshotReport{s.ID, s.Index, s.Term, s.Size, s.Problem == nil})
		if s.Problem != nil {
			d.addDamage(snapshot.Damage(s.Problem))
		} else {
			d.configurations = append(d.configurations, s.Configuration)
		}
	}
	if aside, err := os.ReadDir(d.layout.DamagedSnapshots()); err == nil && len(aside) > 0 {
		d.report.add(Finding{Severity: Info, Part: "snapshot", Where: d.layout.DamagedSnapshots(), Problem: "holds damaged snapshots that a start has moved aside; it may be deleted"})
	}
	if !d.logReadable {
		return nil
	}
	err = snapshot.CheckCoverage(d.layout, list, d.first, d.floor)
	if e, ok := errors.AsType[*datadir.DamageError](err); ok && e.Err == nil { // otherwise the loop above has reported it
		d.addDamage(e)
	}
	return nil
}

// checkStore reads every module and every record. The store is created when the server
// first starts.
func (d *examiner) checkStore() error {
	if _, err := os.Stat(d.layout.Store()); errors.Is(err, fs.ErrNotExist) {
		d.report.add(Finding{Severity: Info, Part: "policy modules and history", Where: d.layout.Store(), Problem: "do not exist yet"})
		return nil
	}
	damage := func(what string, err error) error { return kvstore.Damage(d.layout, what, err) }
	// Opening it would delete all tables.
	if badgerdb.ManifestMissing(d.layout.Store()) {
		d.addDamage(damage("MANIFEST is missing", nil))
		return nil
	}
	if !d.checkTables("policy modules and history", d.layout.Store(), datadir.RemedyStore) {
		return nil
	}
	err := badgerdb.WithCopy(d.layout.Store(), func(db *badger.DB) error {
		s := &kvstore.Store{Layout: d.layout, DB: db, Logger: slog.New(slog.DiscardHandler)}
		if err := d.checkStoreGuard(db); err != nil {
			return damage("cannot be read", err)
		}
		if err := d.checkBlobs(blob.New(s)); err != nil {
			return damage("cannot list modules", err)
		}
		if err := d.checkHistory(s); err != nil {
			return damage("cannot read history", err)
		}
		return nil
	}, func(err error) error {
		return badgerdb.OpenError("policy modules and history", d.layout.Store(), datadir.RemedyStore, err)
	})
	return d.damageOrError(err)
}

// checkStoreGuard reports writes that the store has lost. It is a warning and not damage: a
// power failure may lose the most recent records.
func (d *examiner) checkStoreGuard(db *badger.DB) error {
	seq, err := kvstore.Sequence(db)
	if err != nil {
		return err
	}
	mark, _, err := rollback.Read(d.layout.StoreGuard())
	switch {
	case errors.Is(err, rollback.ErrDamaged):
		d.report.add(Finding{Severity: Warning, Part: "policy modules and history", Where: d.layout.StoreGuard(), Problem: err.Error() + ": lost writes cannot be detected"})
	case err == nil && mark.Seq > seq:
		d.report.add(Finding{
			Severity: Warning, Part: "policy modules and history", Where: d.layout.Store(),
			Problem: fmt.Sprintf("the most recent %d of %d writes are lost, as by a power failure or a damaged journal or manifest", mark.Seq-seq, mark.Seq),
		})
	}
	return nil
}

// checkBlobs reads every finished module and compares it with its digest.
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

// checkHistory reads all records in pages and compares their number with the accounts
// of the segments. A difference is a warning and not damage: the history is not synced,
// so a power failure may lose its end.
func (d *examiner) checkHistory(s *kvstore.Store) error {
	h, err := history.OpenReadOnly(s)
	if err != nil {
		return err
	}
	stats := h.Stats()
	r := &HistoryReport{Records: stats.Records, Bytes: stats.Bytes, First: stats.First.Index, Last: stats.Last.Index}
	d.report.History = r
	// Records are read in pages, so that memory use does not depend on the size of the
	// history.
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
			Problem: fmt.Sprintf("%d records found, %d expected by the accounts: some were lost, as a power failure may lose the most recent ones", count, stats.Records),
		})
	}
	return nil
}
