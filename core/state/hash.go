package state

import (
	"github.com/cespare/xxhash/v2"

	"github.com/cede-scheduler/cede/core/model"
)

// Hashes only find slots; nothing that can be seen depends on them.

func hashID(id string) uint32 { return uint32(xxhash.Sum64String(id)) }

func hashJob(k model.JobKey) uint32 {
	// The default namespace is by far the most frequent, so the cheap way to
	// tell namespaces apart is enough.
	return uint32(xxhash.Sum64String(k.ID) + 31*xxhash.Sum64String(k.Namespace))
}

func hashClass(key uint64) uint32 { return uint32(key ^ key>>32) }
