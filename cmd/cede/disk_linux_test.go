package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A loopDisk is a file system on a loop device. Writes to it block while it is frozen.
type loopDisk struct {
	t          *testing.T
	mountPoint string
}

// mountLoop mounts a loopDisk. It skips the test if mounting is not possible.
func mountLoop(t *testing.T, mountPoint string) *loopDisk {
	t.Helper()
	requireRoot(t)
	for command, pack := range map[string]string{"mkfs.ext4": "e2fsprogs", "fsfreeze": "util-linux", "mount": "mount"} {
		if _, err := exec.LookPath(command); err != nil {
			t.Skipf("%s is not installed: apt-get install %s", command, pack)
		}
	}
	image := mountPoint + ".img"
	f, err := os.Create(image)
	must(t, err, f.Truncate(1<<30), f.Close(), os.MkdirAll(mountPoint, 0o700))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, mountPoint).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a disk: %v: %s", err, out)
	}
	d := &loopDisk{t: t, mountPoint: mountPoint}
	t.Cleanup(func() {
		d.thaw() // a failed test may leave the disk frozen
		if out, err := exec.Command("umount", mountPoint).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return d
}

// freeze blocks all writes to the disk until thaw is called.
func (d *loopDisk) freeze() {
	d.t.Helper()
	if out, err := exec.Command("fsfreeze", "--freeze", d.mountPoint).CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
}

func (d *loopDisk) thaw() { _ = exec.Command("fsfreeze", "--unfreeze", d.mountPoint).Run() }

// A leader whose disk hangs still sends heartbeats, so the followers would not replace it.
// It therefore steps down, exits when the disk responds again, and rejoins after a
// restart. Acknowledged writes survive.
func TestDisk_LeaderStepsDownIfDiskHangs(t *testing.T) {
	t.Setenv(envWriteDeadline, "3s") // time after which a disk counts as hung
	p := newProcessPool(t)
	disks := map[*poolServer]*loopDisk{}
	for _, s := range p.servers {
		disks[s] = mountLoop(t, filepath.Join(p.dir, s.name))
	}
	for _, s := range p.servers {
		s.start()
	}
	lead := p.waitLeader()
	p.startNode("n1")
	h := newHistory(t, p.clients(3))
	h.waitWrites(20)
	frozen := time.Now()
	disks[lead].freeze()
	p.waitNewLeader(lead)
	t.Logf("another server led %v after the disk was frozen (write deadline 3s)", time.Since(frozen).Round(10*time.Millisecond))
	h.waitWrites(20)
	// A write to a memory-mapped file can block the whole process if it has one processor or
	// collects garbage. The server then loses leadership without logging a reason.
	if text := lead.log.String(); !strings.Contains(text, "disk operation") {
		if _, err := lead.status(); err == nil {
			t.Errorf("server responds but did not log why it stepped down:\n%s", text)
		}
	}
	disks[lead].thaw()
	select {
	case <-lead.exited:
	default:
		lead.kill()
	}
	lead.start()
	p.waitCaughtUp(lead)
	h.check(p.c)
	p.checkConverged([]string{"shared-0", "shared-1", "shared-2"})
	p.checkReplay()
}

// A full disk of one server does not affect the pool. A leader steps down, and a follower
// falls behind. Both catch up when space is freed.
func TestDisk_PoolSurvivesFullDisk(t *testing.T) {
	t.Parallel()
	p := newProcessPool(t)
	disks := map[*poolServer]*smallDisk{}
	for _, s := range p.servers {
		disks[s] = mountSmall(t, filepath.Join(p.dir, s.name))
	}
	for _, s := range p.servers {
		s.start()
	}
	lead := p.waitLeader()
	p.startNode("n1")
	h := newHistory(t, p.clients(3))
	h.waitWrites(20)

	disks[lead].fillExcept(votesOnly)
	p.waitNewLeader(lead)
	h.waitWrites(20)
	checkContains(t, lead.log.String(), "not enough disk space")
	disks[lead].freeSpace()
	p.waitConverged()

	follower := p.follower(p.waitLeader())
	disks[follower].fillExcept(votesOnly)
	eventually(t, "the follower falls behind", func() bool { return follower.lag(p.waitLeader()) > 20 })
	h.waitWrites(50)
	checkContains(t, follower.log.String(), "free disk space")
	disks[follower].freeSpace()
	p.waitConverged()

	h.check(p.c)
	p.checkConverged([]string{"shared-0", "shared-1", "shared-2"})
	p.checkReplay()
}
