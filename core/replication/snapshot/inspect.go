package snapshot

import (
	"io"

	"github.com/cede-scheduler/cede/core/state"
)

// Info summarizes a snapshot.
type Info struct {
	ClusterID                                  string
	Version                                    uint32
	Index                                      uint64
	Bytes                                      int64
	Nodes, Jobs, Allocs, Evals, Policies, Mods int
	Hash                                       [32]byte
}

// Inspect reads a snapshot into a state of its own, verifies all of it, and returns a
// summary. Its error is an *Error. It needs memory for the whole state. The caller
// closes in.
func Inspect(in io.Reader) (*Info, error) {
	counted := &countedReader{in: in}
	r := Restorer{Begin: state.New().BeginRestore}
	txn, err := r.Read(counted)
	if err != nil {
		return nil, err
	}
	sn := txn.Commit()
	info := &Info{
		ClusterID: sn.Meta().ClusterID, Version: sn.Meta().Version, Index: sn.Index(), Bytes: counted.n,
		Nodes: sn.NodeCount(), Allocs: sn.AllocCount(), Evals: sn.EvalCount(), Policies: len(sn.PolicyVersions()),
		Mods: r.modules, Hash: Hash(sn),
	}
	for range sn.Jobs() {
		info.Jobs++
	}
	return info, nil
}

type countedReader struct {
	in io.Reader
	n  int64
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.n += int64(n)
	return n, err
}
