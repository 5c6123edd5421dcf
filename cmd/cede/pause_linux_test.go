package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// Servers of a pool are paused for up to a minute, one after the other and as the leader
// first, as by a suspended virtual machine. None exits, and no acknowledged write is lost.
func TestPool_SurvivesPausedServers(t *testing.T) {
	t.Parallel()
	pauses := []time.Duration{3 * time.Second}
	if soak.Full() {
		pauses = []time.Duration{11 * time.Second, 60 * time.Second, 25 * time.Second, 60 * time.Second, 5 * time.Second, 40 * time.Second}
	}
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	p.waitLeader()
	p.startNode("n1")
	h := newHistory(t, p.clients(3))
	h.waitWrites(20)
	for i, pause := range pauses {
		paused := p.waitLeader()
		if i%2 == 1 {
			paused = p.servers[rand.IntN(len(p.servers))]
		}
		must(t, paused.cmd.Process.Signal(syscall.SIGSTOP))
		wait := paused.queueWrites()
		time.Sleep(pause)
		must(t, paused.cmd.Process.Signal(syscall.SIGCONT))
		wait()
		h.waitWrites(20)
		p.waitConverged()
		for _, s := range p.servers {
			select {
			case <-s.exited:
				t.Fatalf("server %s exited after %s was paused for %v:\n%s", s.name, paused.name, pause, s.log.String())
			default:
			}
		}
	}
	h.check(p.c)
	p.checkConverged([]string{"shared-0", "shared-1", "shared-2"})
	p.checkReplay()
}

// queueWrites sends writes to a paused server: it reads them when it continues, at the same time
// as the messages of the leader that replaced it. The returned function waits for the responses.
func (s *poolServer) queueWrites() (wait func()) {
	ctx, cancel := context.WithTimeout(s.p.t.Context(), testTimeout)
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			j, count := simJob(fmt.Sprint("queued-", i%4)), 0
			j.TaskGroups[0].Count, j.Meta = &count, map[string]string{"by": fmt.Sprint(i)}
			_, _ = s.c.Jobs().Register(ctx, j, nil) // the server may have lost the lead
		})
	}
	return func() {
		group.Wait()
		cancel()
	}
}

// A lone server with a full disk names the directory and the space in its log, in /readyz
// and in the errors of requests. It continues when space is free again.
func TestDisk_LoneServerNamesFullDisk(t *testing.T) {
	t.Parallel()
	dataDir := filepath.Join(t.TempDir(), "data")
	disk := mountSmall(t, dataDir)
	d := newServer(t, dataDir, fullLogConfig)
	d.start()
	c := d.client()
	register := func(id string) error {
		_, err := c.Jobs().Register(t.Context(), minimalJob(id), nil)
		return err
	}
	must(t, register("before"))
	disk.fillExcept(votesOnly)
	var last error
	eventually(t, "a request names the disk", func() bool {
		last = register("refused")
		return client.HasCode(last, client.CodeNoLeader)
	})
	checkContains(t, last.Error(), "this server cannot lead", "MiB are free under", "free disk space")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/readyz", nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	body, err := io.ReadAll(response.Body)
	must(t, err, response.Body.Close())
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz returned %s", response.Status)
	}
	checkContains(t, string(body), "leader: no cluster leader, and this server cannot lead", "MiB are free under")
	eventually(t, "the log names the disk", func() bool {
		return strings.Contains(d.stderr.String(), "storage accepts no entries; this server cannot lead")
	})
	disk.freeSpace()
	eventually(t, "writes succeed again", func() bool { return register("after") == nil })
	d.stop()
}
