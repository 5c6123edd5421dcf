package server

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

// Names of nodes appear in URLs and on terminals. All problems are listed at once.
func TestServer_RefusesUnprintableNamesOfNodes(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		const secret = "0123456789abcdef0123456789abcdef"
		s := w.leader().server
		n := coretest.Node("n\x1b[31m", 1000, 1000, 0)
		n.Name, n.Datacenter, n.Class = "name\x07", "dc\u202e1", "class\n"
		_, err := s.RegisterNode(w.ctx, n, secret)
		for _, want := range []string{`ID "n\x1b[31m" must`, `name "name\a" must`, `datacenter "dc\u202e1" must`, `class "class\n" must`} {
			if apierror.CodeOf(err) != apierror.CodeInvalid || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		}
		for _, id := range []string{".", ".."} {
			if _, err := s.RegisterNode(w.ctx, coretest.Node(id, 1000, 1000, 0), secret); apierror.CodeOf(err) != apierror.CodeInvalid {
				t.Errorf("node %q: error %v", id, err)
			}
		}
		n = coretest.Node("n1", 1000, 1000, 0)
		n.Name = "Büro 3"
		if _, err := s.RegisterNode(w.ctx, n, secret); err != nil {
			t.Error(err)
		}
	})
}
