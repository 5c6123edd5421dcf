package storage

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"
)

// logVerdict is what a look at a whole log has found.
type logVerdict struct {
	state    logState
	swept    uint64
	begun    bool     // there is a state
	checked  uint64   // entries that were read
	orphans  [][]byte // keys after the last entry, left by a deletion that a crash cut short
	problems []string
	holes    [][2]uint64 // the first and the last of entries that are missing, ascending
	newer    error       // what this release cannot read, though nothing is wrong with it
}

func (v *logVerdict) problem(format string, args ...any) {
	const most = 20
	if len(v.problems) < most {
		v.problems = append(v.problems, fmt.Sprintf(format, args...))
	}
}

// verifyLog looks at a log: that its state agrees with the side file, that no
// entry is missing, and that the last so many (negative: all) are as they were
// written. The error is one of reading.
func verifyLog(db *badger.DB, mark tailMark, vouched bool, last int) (*logVerdict, error) {
	v := &logVerdict{}
	var err error
	if v.state, v.swept, v.begun, err = readState(db); err != nil {
		return v, fmt.Errorf("its state: %w", err)
	}
	s := &v.state
	switch {
	case vouched:
	case s.seq < mark.seq:
		v.problem("it was rolled back: the side file has seen write %d, entry %d of term %d last; the log is at write %d, entry %d of term %d",
			mark.seq, mark.last, mark.lastTerm, s.seq, s.last, s.lastTerm)
	case s.seq == mark.seq && (s.last != mark.last || s.lastTerm != mark.lastTerm):
		v.problem("at write %d it ends with entry %d of term %d, and with entry %d of term %d by the side file", s.seq, s.last, s.lastTerm, mark.last, mark.lastTerm)
	}
	if s.first > s.last || (s.first == 0) != (s.last == 0) || s.commit > s.last || (s.first > 0 && s.floor >= s.first) {
		v.problem("its state makes no sense: first %d, last %d, committed %d, deleted to %d", s.first, s.last, s.commit, s.floor)
		return v, nil
	}
	if err := v.walk(db); err != nil {
		return v, err
	}
	v.readLast(db, last)
	return v, nil
}

// verdict is the error that refuses a log; nil when it is as it was written.
func (v *logVerdict) verdict(layout Layout, err error) error {
	switch {
	case err != nil:
		return logDamage(layout, "it cannot be read", err)
	case v.newer != nil:
		return logDamage(layout, "it cannot be read", v.newer)
	case len(v.problems) > 0:
		return logDamage(layout, v.problems[0], nil)
	}
	return nil
}

// walk looks for holes.
func (v *logVerdict) walk(db *badger.DB) error {
	s := &v.state
	next := s.first
	err := view(db, func(txn *badger.Txn) error {
		return walkIndexes(txn, max(s.first, s.floor+1), func(key []byte, index uint64) bool {
			if index > s.last {
				v.orphans = append(v.orphans, key)
				return true
			}
			if index != next {
				v.hole(next, index-1)
			}
			next = index + 1
			return true
		})
	})
	if err != nil {
		return err
	}
	if next <= s.last && s.last > 0 {
		v.hole(next, s.last)
	}
	if !v.begun && len(v.orphans) > 0 {
		v.problem("its state is missing, and entries are there, such as %d", keyIndex(v.orphans[0]))
	}
	return nil
}

func (v *logVerdict) hole(from, to uint64) {
	v.holes = append(v.holes, [2]uint64{from, to})
	if from == to {
		v.problem("entry %d is missing", from)
	} else {
		v.problem("entries %d to %d are missing", from, to)
	}
}

// readLast reads entries and checks each against the one before it.
func (v *logVerdict) readLast(db *badger.DB, last int) {
	s := &v.state
	if s.empty() {
		return
	}
	from := s.first
	if last >= 0 && s.last-s.first >= uint64(last) {
		from = s.last - uint64(last) + 1
	}
	term := uint64(0)
	holes := v.holes
	for i := from; i <= s.last; i++ {
		for len(holes) > 0 && holes[0][1] < i {
			holes = holes[1:]
		}
		if len(holes) > 0 && i >= holes[0][0] { // told already, once for all of it
			i = holes[0][1]
			continue
		}
		var e raft.Log
		if err := readEntry(db, i, &e); err != nil {
			if errors.Is(err, ErrNewer) && v.newer == nil {
				v.newer = fmt.Errorf("entry %d: %w", i, err)
				continue
			}
			v.problem("entry %d cannot be read: %v", i, err)
			continue
		}
		v.checked++
		if e.Term < term {
			v.problem("entry %d is of term %d, one before it of term %d", i, e.Term, term)
		}
		term = max(term, e.Term)
		if i == s.last && e.Term != s.lastTerm {
			v.problem("the last entry, %d, is of term %d, and of term %d by the log's state", i, e.Term, s.lastTerm)
		}
	}
}
