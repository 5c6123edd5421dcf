package storage_test

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

func TestConformance_RaftsStoreInMemory(t *testing.T) {
	storagetest.Conformance(t, func(*testing.T) storagetest.Store { return raft.NewInmemStore() })
}

func TestConformance_Log(t *testing.T) {
	storagetest.Conformance(t, func(t *testing.T) storagetest.Store { return openLog(t, t.TempDir()) })
}
