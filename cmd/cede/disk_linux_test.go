package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// loopDisk mounts a disk of its own at a folder, which can be frozen: whoever writes
// to it then waits.
type loopDisk struct {
	t  *testing.T
	at string
}

// mountLoop mounts one, or skips the test.
func mountLoop(t *testing.T, at string) *loopDisk {
	t.Helper()
	asRoot(t)
	for command, pack := range map[string]string{"mkfs.ext4": "e2fsprogs", "fsfreeze": "util-linux", "mount": "mount"} {
		if _, err := exec.LookPath(command); err != nil {
			t.Skipf("%s is not installed: apt-get install %s", command, pack)
		}
	}
	image := at + ".img"
	f, err := os.Create(image)
	do(t, err, f.Truncate(1<<30), f.Close(), os.MkdirAll(at, 0o700))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
		t.Skipf("a disk is mounted for this, and that is not allowed here (%v: %s): run the tests where it is", err, out)
	}
	d := &loopDisk{t: t, at: at}
	t.Cleanup(func() {
		d.thaw() // it is, unless the test failed
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return d
}

func (d *loopDisk) freeze() {
	d.t.Helper()
	if out, err := exec.Command("fsfreeze", "--freeze", d.at).CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
}

func (d *loopDisk) thaw() { _ = exec.Command("fsfreeze", "--unfreeze", d.at).Run() }

// A leader whose disk hangs sends heartbeats as before, and nobody would ever replace
// it: it gives the lead up instead, ends once the disk answers again, and comes back.
// What was acknowledged is there.
func TestDisk_ThatHangsCostsTheLead(t *testing.T) {
	t.Setenv(envWriteDeadline, "3s") // as long as a disk may take before it counts as hung
	p := newProcessPool(t)
	disks := map[*poolServer]*loopDisk{}
	for _, s := range p.servers {
		disks[s] = mountLoop(t, filepath.Join(p.dir, s.name))
	}
	for _, s := range p.servers {
		s.start()
	}
	lead := p.leader()
	p.node("n1")
	h := newHistory(t, p.people(3))
	h.goesOn(20)
	frozen := time.Now()
	disks[lead].freeze()
	p.otherLeader(lead)
	t.Logf("another one led %v after the disk had stopped, which counted as hung after 3s", time.Since(frozen).Round(10*time.Millisecond))
	h.goesOn(20)
	// What it writes to a file that is mapped into memory may have it stand still as a whole,
	// where it has one processor or collects garbage: so it leads no more without a word.
	if text := lead.log.String(); !strings.Contains(text, "disk operation") {
		if _, err := lead.status(); err == nil {
			t.Errorf("it answers, and does not say why it leads no more:\n%s", text)
		}
	}
	disks[lead].thaw()
	select {
	case <-lead.ended:
	default:
		lead.kill()
	}
	lead.start()
	p.follows(lead)
	h.end(p.c)
	p.settled([]string{"shared-0", "shared-1", "shared-2"})
	p.replayed()
}

// A server whose disk fills up costs the pool nothing: while it leads it gives the lead
// up, while it follows it falls behind, and with room it has what the others have.
func TestDisk_ThatIsFullCostsThePoolNothing(t *testing.T) {
	t.Parallel()
	p := newProcessPool(t)
	disks := map[*poolServer]*smallDisk{}
	for _, s := range p.servers {
		disks[s] = mountSmall(t, filepath.Join(p.dir, s.name))
	}
	for _, s := range p.servers {
		s.start()
	}
	lead := p.leader()
	p.node("n1")
	h := newHistory(t, p.people(3))
	h.goesOn(20)

	disks[lead].leave(200) // less than entries need, more than votes do
	p.otherLeader(lead)
	h.goesOn(20)
	says(t, lead.log.String(), "not enough disk space")
	disks[lead].room()
	p.together()

	follower := p.follower(p.leader())
	disks[follower].leave(60)
	eventually(t, "it falls behind", func() bool { return follower.isBehind(p.leader()) > 20 })
	h.goesOn(50)
	says(t, follower.log.String(), "free disk space")
	disks[follower].room()
	p.together()

	h.end(p.c)
	p.settled([]string{"shared-0", "shared-1", "shared-2"})
	p.replayed()
}
