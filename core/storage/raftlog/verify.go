package raftlog

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/rollback"
)

// A Verification is the result of checking a whole log.
type Verification struct {
	State    State
	swept    uint64
	hasState bool     // a state is stored
	Checked  uint64   // entries read and intact
	Orphans  [][]byte // keys after the last entry, left by a deletion that a crash interrupted
	Problems []string
	gaps     [][2]uint64 // first and last of each range of missing entries, ascending
	Newer    error       // data in a later format; it is not damage
	Owner    string      // ID of the server that wrote the log, "" if it is not recorded
}

// addProblem records damage. The first 20 problems suffice to choose a remedy.
func (v *Verification) addProblem(format string, args ...any) {
	const most = 20
	if len(v.Problems) < most {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

// Verify checks that the state of the log agrees with the rollback guard, that no entry is
// missing, and that the newest last entries (all if last is negative) are intact. It
// returns an error only if the database cannot be read.
func Verify(db *badger.DB, mark rollback.Mark, vouched bool, last int) (*Verification, error) {
	v := &Verification{}
	var err error
	if v.State, v.swept, v.hasState, err = readState(db); err != nil {
		return v, fmt.Errorf("state: %w", err)
	}
	s := &v.State
	// A higher number in the guard means that writes were lost; an equal number must
	// describe the same end of the log. A lower one is normal, since the guard is synced
	// later.
	switch {
	case vouched:
	case s.Seq < mark.Seq:
		v.addProblem("rolled back: the guard recorded write %d with entry %d of term %d last, the log is at write %d with entry %d of term %d",
			mark.Seq, mark.Last, mark.LastTerm, s.Seq, s.Last, s.LastTerm)
	case s.Seq == mark.Seq && (s.Last != mark.Last || s.LastTerm != mark.LastTerm):
		v.addProblem("at write %d the log ends with entry %d of term %d, and with entry %d of term %d according to the guard", s.Seq, s.Last, s.LastTerm, mark.Last, mark.LastTerm)
	}
	if s.First > s.Last || (s.First == 0) != (s.Last == 0) || s.Commit > s.Last || (s.First > 0 && s.Floor >= s.First) {
		v.addProblem("inconsistent state: first %d, last %d, committed %d, deleted to %d", s.First, s.Last, s.Commit, s.Floor)
		return v, nil
	}
	if err := v.checkGaps(db); err != nil {
		return v, err
	}
	v.checkEntries(db, last)
	v.Owner, err = readOwner(db)
	return v, err
}

// readOwner returns the ID of the server that wrote the log, or "" if it is not recorded.
func readOwner(db *badger.DB) (owner string, err error) {
	err = badgerdb.View(db, func(txn *badger.Txn) error {
		b, err := badgerdb.Get(txn, stableKey(OwnerKey))
		if err != nil || b == nil {
			return err
		}
		b, err = badgerdb.Unseal(b)
		owner = string(b)
		return err
	})
	return owner, err
}

// Err returns a *datadir.DamageError if the log must be refused, or nil. err is the error
// of Verify.
func (v *Verification) Err(layout datadir.Layout, err error) error {
	switch {
	case err != nil:
		return Damage(layout, "cannot be read", err)
	case v.Newer != nil:
		return Damage(layout, "cannot be read", v.Newer)
	case len(v.Problems) > 0:
		return Damage(layout, v.Problems[0], nil)
	}
	return nil
}

// checkGaps finds missing entries by walking the keys, and keys beyond the last entry.
// Keys are read without values, so the walk is cheap in comparison with checkEntries.
func (v *Verification) checkGaps(db *badger.DB) error {
	s := &v.State
	next := s.First
	err := badgerdb.View(db, func(txn *badger.Txn) error {
		return walkIndexes(txn, max(s.First, s.Floor+1), func(key []byte, index uint64) bool {
			if index > s.Last {
				v.Orphans = append(v.Orphans, key)
				return true
			}
			if index != next {
				v.addGap(next, index-1)
			}
			next = index + 1
			return true
		})
	})
	if err != nil {
		return err
	}
	if next <= s.Last && s.Last > 0 {
		v.addGap(next, s.Last)
	}
	if !v.hasState && len(v.Orphans) > 0 {
		v.addProblem("state is missing, but there are entries such as %d", keyIndex(v.Orphans[0]))
	}
	return nil
}

// addGap records that the entries from from to to are missing.
func (v *Verification) addGap(from, to uint64) {
	v.gaps = append(v.gaps, [2]uint64{from, to})
	if from == to {
		v.addProblem("entry %d is missing", from)
	} else {
		v.addProblem("entries %d to %d are missing", from, to)
	}
}

// checkEntries reads the newest last entries and compares each with the previous one:
// terms never decrease. Entries in a later format are counted as such and not as
// damage. Gaps were reported before.
func (v *Verification) checkEntries(db *badger.DB, last int) {
	s := &v.State
	if s.IsEmpty() {
		return
	}
	from := s.First
	if last >= 0 && s.Last-s.First >= uint64(last) {
		from = s.Last - uint64(last) + 1
	}
	term := uint64(0)
	holes := v.gaps
	for i := from; i <= s.Last; i++ {
		for len(holes) > 0 && holes[0][1] < i {
			holes = holes[1:]
		}
		if len(holes) > 0 && i >= holes[0][0] { // reported as a gap
			i = holes[0][1]
			continue
		}
		var e raft.Log
		if err := ReadEntry(db, i, &e); err != nil {
			if errors.Is(err, datadir.ErrNewer) && v.Newer == nil {
				v.Newer = fmt.Errorf("entry %d: %w", i, err)
				continue
			}
			v.addProblem("cannot read entry %d: %v", i, err)
			continue
		}
		v.Checked++
		if e.Term < term {
			v.addProblem("entry %d has term %d, lower than term %d before it", i, e.Term, term)
		}
		term = max(term, e.Term)
		if i == s.Last && e.Term != s.LastTerm {
			v.addProblem("last entry %d has term %d, but term %d according to the state", i, e.Term, s.LastTerm)
		}
	}
}
