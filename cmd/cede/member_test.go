package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
)

// The script of examples/member completes: it runs a server and two member clusters as
// processes, and each binding runs in the cluster it is assigned to.
func TestMemberExample_Completes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "../../examples/member/member.sh", cedetest.Program(t))
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, fmt.Sprintf("MEMBER_PORT=%d", freePorts(t, 20)))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	normalized := strings.Join(strings.Fields(string(out)), " ")
	for _, want := range []string{
		"release default 100 bound", "default/etl 10 eu", "default/release 100 eu", "member-default-release-", "etl default 10 bound 3/3 3",
		"Stop everything and remove all files.",
	} {
		if !strings.Contains(normalized, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// freePorts returns the first of n consecutive loopback ports that are currently free.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		base := 10_000 + rand.IntN(20_000/n)*n
		free := true
		for port := base; port < base+n && free; port++ {
			address := fmt.Sprintf("127.0.0.1:%d", port)
			_, taken := usedPorts.LoadOrStore(address, true)
			free = !taken && isFree(address)
		}
		if free {
			return base
		}
	}
	t.Fatalf("found no %d consecutive free ports", n)
	return 0
}
