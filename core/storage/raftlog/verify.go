package raftlog

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
)

// logVerdict is what a look at a whole log has found.
type Verification struct {
	State    State
	swept    uint64
	hasState bool     // there is a state
	Checked  uint64   // entries that were read
	Orphans  [][]byte // keys after the last entry, left by a deletion that a crash cut short
	Problems []string
	gaps     [][2]uint64 // the first and the last of entries that are missing, ascending
	Newer    error       // what this release cannot read, though nothing is wrong with it
}

func (v *Verification) addProblem(format string, args ...any) {
	const most = 20
	if len(v.Problems) < most {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

// verifyLog looks at a log: that its state agrees with the side file, that no
// entry is missing, and that the last so many (negative: all) are as they were
// written. The error is one of reading.
func Verify(db *badger.DB, mark GuardMark, vouched bool, last int) (*Verification, error) {
	v := &Verification{}
	var err error
	if v.State, v.swept, v.hasState, err = readState(db); err != nil {
		return v, fmt.Errorf("its state: %w", err)
	}
	s := &v.State
	switch {
	case vouched:
	case s.Seq < mark.Seq:
		v.addProblem("it was rolled back: the side file has seen write %d, entry %d of term %d last; the log is at write %d, entry %d of term %d",
			mark.Seq, mark.Last, mark.LastTerm, s.Seq, s.Last, s.LastTerm)
	case s.Seq == mark.Seq && (s.Last != mark.Last || s.LastTerm != mark.LastTerm):
		v.addProblem("at write %d it ends with entry %d of term %d, and with entry %d of term %d by the side file", s.Seq, s.Last, s.LastTerm, mark.Last, mark.LastTerm)
	}
	if s.First > s.Last || (s.First == 0) != (s.Last == 0) || s.Commit > s.Last || (s.First > 0 && s.Floor >= s.First) {
		v.addProblem("its state makes no sense: first %d, last %d, committed %d, deleted to %d", s.First, s.Last, s.Commit, s.Floor)
		return v, nil
	}
	if err := v.checkGaps(db); err != nil {
		return v, err
	}
	v.checkEntries(db, last)
	return v, nil
}

// Err is the error that refuses a log; nil when it is as it was written.
func (v *Verification) Err(layout datadir.Layout, err error) error {
	switch {
	case err != nil:
		return Damage(layout, "it cannot be read", err)
	case v.Newer != nil:
		return Damage(layout, "it cannot be read", v.Newer)
	case len(v.Problems) > 0:
		return Damage(layout, v.Problems[0], nil)
	}
	return nil
}

// checkGaps looks for holes.
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
		v.addProblem("its state is missing, and entries are there, such as %d", keyIndex(v.Orphans[0]))
	}
	return nil
}

func (v *Verification) addGap(from, to uint64) {
	v.gaps = append(v.gaps, [2]uint64{from, to})
	if from == to {
		v.addProblem("entry %d is missing", from)
	} else {
		v.addProblem("entries %d to %d are missing", from, to)
	}
}

// checkEntries reads entries and checks each against the one before it.
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
		if len(holes) > 0 && i >= holes[0][0] { // told already, once for all of it
			i = holes[0][1]
			continue
		}
		var e raft.Log
		if err := ReadEntry(db, i, &e); err != nil {
			if errors.Is(err, datadir.ErrNewer) && v.Newer == nil {
				v.Newer = fmt.Errorf("entry %d: %w", i, err)
				continue
			}
			v.addProblem("entry %d cannot be read: %v", i, err)
			continue
		}
		v.Checked++
		if e.Term < term {
			v.addProblem("entry %d is of term %d, one before it of term %d", i, e.Term, term)
		}
		term = max(term, e.Term)
		if i == s.Last && e.Term != s.LastTerm {
			v.addProblem("the last entry, %d, is of term %d, and of term %d by the log's state", i, e.Term, s.LastTerm)
		}
	}
}
