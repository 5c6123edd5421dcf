package server

import (
	"crypto/ed25519"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Every server of a pool has the keys of all servers, also of one that is gone.
func TestServer_PublishesKeyOfCertificates(t *testing.T) {
	var keys [][32]byte
	runServersInPool(t, newMemberPool, 3, func(c *Config) {
		public, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, [32]byte(public))
		c.Decision = private
	}, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		time.Sleep(10 * time.Second)
		gone := w.follower()
		gone.halt()
		time.Sleep(time.Minute) // the pool notices
		if err := w.leader().server.RemovePeer(w.ctx, gone.id); err != nil {
			t.Fatal(err)
		}
		for _, m := range w.members {
			if m == gone {
				continue
			}
			list := m.server.Snapshot().Signers()
			servers := map[string]bool{}
			for _, key := range keys {
				i := slices.IndexFunc(list, func(s *model.Signer) bool { return s.Key == key })
				if i < 0 {
					t.Errorf("%s lacks a key: %+v", m.id, list)
					continue
				}
				servers[list[i].ServerID] = true
			}
			if len(list) != 3 || len(servers) != 3 {
				t.Errorf("%s has signers %+v", m.id, list)
			}
		}
	})
}
