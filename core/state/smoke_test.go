package state

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
)

func TestSmoke(t *testing.T) {
	s := New()
	tx := s.Begin(1)
	for i := range 200 {
		if err := tx.UpsertNode(&model.Node{ID: fmt.Sprintf("n%03d", i), Datacenter: "dc", Capacity: model.Resources{"cpu": 1000, "gpu": 3}}); err != nil {
			t.Fatal(err)
		}
	}
	j := &model.Job{Namespace: "default", ID: "a", Priority: 20, Groups: []*model.Group{{Name: "g", Resources: model.Resources{"cpu": 10}, Ports: []uint16{80}}}}
	if err := tx.UpsertJob(j); err != nil {
		t.Fatal(err)
	}
	sn := tx.Commit()
	if err := sn.Check(); err != nil {
		t.Fatal(err)
	}
	for k := range 50 {
		tx = s.Begin(uint64(k + 2))
		for i := range 100 {
			tx.UpsertAllocs(&model.Allocation{ID: fmt.Sprintf("x%d-%d", k, i), Job: j, Group: j.Groups[0], NodeID: fmt.Sprintf("n%03d", (i*7+k)%200)})
		}
		tx.Commit()
		if err := s.Snapshot().Check(); err != nil {
			t.Fatal(err)
		}
	}
	f := s.Snapshot().Fork(52)
	for a := range s.Snapshot().Allocs() {
		f.DeleteAllocs(a.ID)
	}
	if err := f.Snapshot().Check(); err != nil {
		t.Fatal(err)
	}
	if err := s.Snapshot().Check(); err != nil {
		t.Fatal(err)
	}
	if f.AllocCount() != 0 || s.Snapshot().AllocCount() != 5000 {
		t.Fatal(f.AllocCount(), s.Snapshot().AllocCount())
	}
}
