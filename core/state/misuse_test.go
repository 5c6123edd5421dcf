package state_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
)

func TestTxn_MisusePanics(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func(*Store)
		want string
	}{
		"index not raised": {func(s *Store) { s.Begin(1) }, "index 1 after 1"},
		"fork of the past": {func(s *Store) { s.Snapshot().Fork(0) }, "fork at index 0"},
		"fork committed":   {func(s *Store) { s.Snapshot().Fork(1).Commit() }, "cannot be committed"},
		"alloc not copied": {func(s *Store) { f := s.Snapshot().Fork(1); f.AllocWriter().Upsert(f.Alloc("a0")) }, "without a copy"},
		"job not copied":   {func(s *Store) { f := s.Snapshot().Fork(1); _ = f.JobWriter().Upsert(f.Job(keyOf("j0"))) }, "without a copy"},
		"node not copied":  {func(s *Store) { f := s.Snapshot().Fork(1); _ = f.NodeWriter().Upsert(f.Node("n0")) }, "without a copy"},
		"eval not copied":  {func(s *Store) { f := s.Snapshot().Fork(1); f.EvalWriter().Upsert(f.Eval("e0")) }, "without a copy"},
		"alloc to elsewhere": {func(s *Store) {
			f := s.Snapshot().Fork(1)
			a := *f.Alloc("a0")
			a.NodeID = "n1"
			f.AllocWriter().Upsert(&a)
		}, "changed its node"},
		"foreign group": {func(s *Store) {
			f := s.Snapshot().Fork(1)
			a := allocOf(f, "a1", "j0", "n0")
			a.Group = f.Job(keyOf("j1")).Groups[0]
			f.AllocWriter().Upsert(a)
		}, "not part of its job version"},
		"write after commit": {func(s *Store) {
			txn := s.Begin(2)
			txn.Commit()
			txn.NodeWriter().Delete("n0")
		}, "has ended"},
		"commit twice": {func(s *Store) {
			txn := s.Begin(2)
			txn.Commit()
			txn.Commit()
		}, "has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			s := seeded(t)
			before := s.Snapshot()
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tc.want) {
					t.Errorf("panic %q, want one with %q", got, tc.want)
				}
				if err := before.Check(); err != nil {
					t.Error(err)
				}
				s.Begin(9).Abort() // the lock is free
			}()
			tc.do(s)
		})
	}
}

func TestTxn_TooManyResourceNamesChangeNothing(t *testing.T) {
	t.Parallel()
	s := seeded(t)
	tooMany := model.Resources{}
	for i := range model.MaxDimensions {
		tooMany[fmt.Sprintf("r%02d", i)] = 1
	}
	txn := s.Begin(2)
	j := jobOf("j9", 1)
	j.Groups[0].Resources = tooMany
	for _, err := range []error{txn.JobWriter().Upsert(j), txn.NodeWriter().Upsert(&model.Node{ID: "n9", Capacity: tooMany})} {
		if !errors.Is(err, model.ErrTooManyDimensions) {
			t.Errorf("got %v", err)
		}
	}
	sn := checked(t, txn)
	if sn.Job(j.Key()) != nil || sn.Node("n9") != nil || sn.Dims().Len() != 4 {
		t.Error("something was written")
	}
}
