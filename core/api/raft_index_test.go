package api

import (
	"context"
	"net/http"
	"strconv"
	"testing"
)

// A change of Raft's configuration has no index in the state. It is answered with an index from
// before it, so that a caller that waits for changes after it misses none of those that others
// made meanwhile.
func TestRaftChanges_AnswerIndexBeforeChangesOfOthers(t *testing.T) {
	for method, path := range map[string]string{"PUT": "/v1/operator/raft/transfer-leadership", "DELETE": "/v1/operator/raft/peer?id=s9"} {
		t.Run(path, func(t *testing.T) {
			var others func() // changes the state while Raft's configuration changes
			w := start(t, func(c *Config) {
				c.Server = removingServer{c.Server, func() { others() }}
				c.Replication = transferringLog{c.Replication, func() { others() }}
			})
			others = func() { w.addNode("n1", 100, 100) }
			resp, text := w.send(method, path, "")
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", resp.StatusCode, text)
			}
			index, err := strconv.ParseUint(resp.Header.Get("X-Nomad-Index"), 10, 64)
			node, _, nodeErr := w.client.Nodes().Get(t.Context(), "n1", nil)
			if err != nil || nodeErr != nil || index == 0 || index >= node.ModifyIndex {
				t.Errorf("index %d of the answer, %d of the other change; %v, %v", index, node.ModifyIndex, err, nodeErr)
			}
		})
	}
}

type removingServer struct {
	Server
	remove func()
}

func (s removingServer) RemovePeer(context.Context, string) error {
	s.remove()
	return nil
}

type transferringLog struct {
	Replication
	transfer func()
}

func (l transferringLog) Transfer(context.Context) error {
	l.transfer()
	return nil
}
