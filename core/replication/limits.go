package replication

const (
	// MaxEntry is the largest size of an encoded entry, in bytes. Raft sends whole
	// entries between heartbeats, so that a larger entry would delay heartbeats.
	MaxEntry = 512 << 10
	// MaxChunk is the largest size of one PutChunk, in bytes.
	MaxChunk = 256 << 10
	// MaxModule is the largest size of a policy module, in bytes. A module is part
	// of the state until it is loaded.
	MaxModule = 8 << 20
)
