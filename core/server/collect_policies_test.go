package server

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

func TestOldPolicies_AreAllButTheNewestAndThoseInUse(t *testing.T) {
	store := state.New()
	for i := range 6 {
		txn := store.Begin(uint64(i + 1))
		txn.UpsertPolicyVersion(&model.PolicyVersion{ID: fmt.Sprintf("v%d", i), Name: "mine"})
		txn.UpsertPolicyVersion(&model.PolicyVersion{ID: fmt.Sprintf("o%d", i), Name: "other"})
		txn.Commit()
	}
	txn := store.Begin(7)
	txn.UpsertPolicyState(&model.PolicyState{Name: "mine", Active: "v0", Previous: "v1", Shadow: "v2"})
	snap := txn.Commit()
	for keep, want := range map[int]string{-1: "", 2: "o0 o1 o2 o3 v3 ", 5: "o0 ", 6: "", 100: ""} {
		got := ""
		for _, v := range oldPolicies(snap, keep) {
			got += v.ID + " "
		}
		if got != want {
			t.Errorf("with the newest %d kept %q go, want %q", keep, got, want)
		}
	}
}
