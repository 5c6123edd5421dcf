package gossip_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/gossip"
)

// member starts a member on the network.
func member(t *testing.T, n *network, i int, change ...func(*gossip.Config)) *gossip.Pool {
	t.Helper()
	ip := fmt.Sprintf("10.0.0.%d", i)
	cfg := gossip.Config{
		ID: fmt.Sprintf("server-%d", i), Cluster: "prod", Transport: n.host(ip),
		Tags: gossip.Tags{Raft: ip + ":4647", Oldest: 1, Newest: 2},
	}
	for _, c := range change {
		c(&cfg)
	}
	p, err := gossip.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close()
		time.Sleep(30 * time.Second) // probes in flight end by their timers
	})
	return p
}

func seeds(addrs ...string) func(*gossip.Config) {
	return func(c *gossip.Config) { c.Seeds = addrs }
}

// seen returns the status of all members as seen by p, by ID.
func seen(p *gossip.Pool) string {
	var b strings.Builder
	for _, m := range p.Members() {
		fmt.Fprintf(&b, "%s:%s ", m.ID, m.Status)
	}
	return strings.TrimSpace(b.String())
}

func expect(t *testing.T, p *gossip.Pool, want string) {
	t.Helper()
	if got := seen(p); got != want {
		t.Errorf("members are %q, want %q", got, want)
	}
}

const first = "10.0.0.1:7946"

func TestPool_DiscoversAllMembersThroughOneSeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a := member(t, n, 1)
		b, c := member(t, n, 2, seeds(first)), member(t, n, 3, seeds(first))
		time.Sleep(5 * time.Second)
		for _, p := range []*gossip.Pool{a, b, c} {
			expect(t, p, "server-1:alive server-2:alive server-3:alive")
		}
		if got := a.Members()[2].Tags.Raft; got != "10.0.0.3:4647" {
			t.Errorf("Raft address of the third member is %q", got)
		}
	})
}

func TestPool_DistinguishesLeavingFromFailing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		forget := func(c *gossip.Config) { c.Timing.Forget = time.Hour } // each second of virtual time costs a probe
		a := member(t, n, 1, forget)
		b, c := member(t, n, 2, seeds(first)), member(t, n, 3, seeds(first))
		time.Sleep(5 * time.Second)
		if err := b.Leave(5 * time.Second); err != nil {
			t.Fatal(err)
		}
		_ = b.Close()
		time.Sleep(5 * time.Second)
		expect(t, a, "server-1:alive server-2:left server-3:alive")
		_ = c.Close()
		time.Sleep(20 * time.Second)
		expect(t, a, "server-1:alive server-2:left server-3:failed")
		time.Sleep(2 * time.Hour)
		expect(t, a, "server-1:alive")
	})
}

// The cluster may receive its ID while a server leaves. The order of broadcasts is random,
// so the test repeats.
func TestPool_IgnoresTagsWhileLeaving(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			a, b := member(t, n, 1), member(t, n, 2, seeds(first))
			time.Sleep(5 * time.Second)
			left := make(chan error)
			go func() { left <- b.Leave(5 * time.Second) }()
			synctest.Wait() // Leave waits for the others
			if err := b.SetTags(gossip.Tags{Raft: "10.0.0.2:4647", ClusterID: "c1", Oldest: 1, Newest: 2}); err != nil {
				t.Fatal(err)
			}
			if err := <-left; err != nil {
				t.Fatal(err)
			}
			_ = b.Close()
			time.Sleep(5 * time.Second)
			expect(t, a, "server-1:alive server-2:left")
		})
	}
}

func TestPool_HealsAfterLongPartition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a := member(t, n, 1)
		b, c := member(t, n, 2, seeds(first)), member(t, n, 3, seeds(first))
		time.Sleep(5 * time.Second)
		n.cut("10.0.0.3:7946")
		time.Sleep(time.Hour) // far longer than memberlist remembers dead members
		expect(t, a, "server-1:alive server-2:alive server-3:failed")
		expect(t, c, "server-1:failed server-2:failed server-3:alive")
		n.cut()
		time.Sleep(2 * time.Minute)
		for _, p := range []*gossip.Pool{a, b, c} {
			expect(t, p, "server-1:alive server-2:alive server-3:alive")
		}
	})
}

func TestPool_PropagatesChangedTags(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b := member(t, n, 1), member(t, n, 2, seeds(first))
		time.Sleep(5 * time.Second)
		if err := b.SetTags(gossip.Tags{Raft: "10.0.0.2:4647", ClusterID: "c1", Oldest: 1, Newest: 2}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if got := a.Members()[1].Tags.ClusterID; got != "c1" {
			t.Errorf("cluster of the other member is %q, want c1", got)
		}
		var updated bool
		for len(a.Events()) > 0 {
			e := <-a.Events()
			updated = updated || e.Member.Tags.ClusterID == "c1" && e.Before == gossip.Alive && !e.New
		}
		if !updated {
			t.Error("no event for the new tags")
		}
	})
}

func TestPool_RejectsForeignMembers(t *testing.T) {
	t.Parallel()
	cluster := func(id string) func(*gossip.Config) {
		return func(c *gossip.Config) { c.Tags.ClusterID = id }
	}
	tests := map[string]struct {
		ours, theirs func(*gossip.Config)
		want         string
	}{
		"another cluster": {cluster("c1"), cluster("c2"), "belongs to cluster c1, this server to c2"},
		"another pool": {
			func(*gossip.Config) {},
			func(c *gossip.Config) { c.Cluster = "test" }, "10.0.0.1",
		},
		"a later version": {
			func(*gossip.Config) {},
			func(c *gossip.Config) { c.Tags.Oldest, c.Tags.Newest = 3, 4 }, "upgrade one release at a time",
		},
		"another key": {
			func(c *gossip.Config) { c.Keys = [][]byte{bytes.Repeat([]byte{1}, 32)} },
			func(c *gossip.Config) { c.Keys = [][]byte{bytes.Repeat([]byte{2}, 32)} }, "10.0.0.1",
		},
		"no key": {
			func(c *gossip.Config) { c.Keys = [][]byte{bytes.Repeat([]byte{1}, 32)} },
			func(*gossip.Config) {}, "10.0.0.1",
		},
		"the same ID": {
			func(*gossip.Config) {},
			func(c *gossip.Config) { c.ID = "server-1" }, "its data directory was copied",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				a := member(t, n, 1, tc.ours)
				b := member(t, n, 2, tc.theirs)
				_, err := b.Join(first)
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("join returned %v, want %q in it", err, tc.want)
				}
				time.Sleep(time.Minute)
				expect(t, a, "server-1:alive")
			})
		})
	}
}

// A stopped server is accepted at another address at once, a killed one shortly after its
// failure is detected.
func TestPool_AcceptsServerAtNewAddress(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end    func(*gossip.Pool) error
		within time.Duration
	}{
		"stopped": {func(p *gossip.Pool) error { return p.Stop(5 * time.Second) }, 2 * time.Second},
		"killed":  {(*gossip.Pool).Close, 12 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 8 { // the order of probes is random
				synctest.Test(t, func(t *testing.T) { move(t, tc.end, tc.within) })
			}
		})
	}
}

func move(t *testing.T, end func(*gossip.Pool) error, within time.Duration) {
	n := newNetwork()
	soon := func(c *gossip.Config) { c.Timing.Rejoin = 5 * time.Second }
	a, b, c := member(t, n, 1, soon), member(t, n, 2, seeds(first), soon), member(t, n, 3, seeds(first), soon)
	time.Sleep(5 * time.Second)
	if err := end(b); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	moved := member(t, n, 4, seeds(first), soon, func(c *gossip.Config) { c.ID = "server-2" })
	const all = "server-1:alive server-2:alive server-3:alive"
	there := func(p *gossip.Pool) bool { return seen(p) == all && p.Members()[1].Addr == "10.0.0.4:7946" }
	for !there(a) || !there(c) || !there(moved) {
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("members see %q, %q and %q", seen(a), seen(c), seen(moved))
		}
		time.Sleep(100 * time.Millisecond)
	}
	if took := time.Since(began); took > within {
		t.Errorf("accepted after %v, want within %v", took, within)
	}
}

// A stopped server remains a member: it counts as failed rather than left, the others learn
// of it at once, and accept it back at once.
func TestPool_KeepsStoppedMember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a := member(t, n, 1)
		b, c := member(t, n, 2, seeds(first)), member(t, n, 3, seeds(first))
		time.Sleep(5 * time.Second)
		if err := b.Stop(5 * time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		expect(t, a, "server-1:alive server-2:failed server-3:alive")
		expect(t, c, "server-1:alive server-2:failed server-3:alive")
		member(t, n, 2, seeds(first))
		time.Sleep(2 * time.Second)
		expect(t, a, "server-1:alive server-2:alive server-3:alive")
		expect(t, c, "server-1:alive server-2:alive server-3:alive")
	})
}

// memberlist decrypts with a list of keys that it reads without a lock. So a list must not
// change after it was returned, whichever key is removed.
func TestPool_RemovedKeyDoesNotShiftKeysInUse(t *testing.T) {
	t.Parallel()
	key := func(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }
	for _, removed := range []byte{2, 3, 4} {
		synctest.Test(t, func(t *testing.T) {
			p := member(t, newNetwork(), 1, func(c *gossip.Config) { c.Keys = [][]byte{key(1), key(2), key(3), key(4)} })
			inUse := p.Keys()
			want := slices.Clone(inUse)
			if err := p.RemoveKey(key(removed)); err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(inUse, want, bytes.Equal) {
				t.Errorf("removing key %d changed a list in use to %v", removed, inUse)
			}
			rest := p.Keys()
			if len(rest) != 3 || !bytes.Equal(rest[0], key(1)) || slices.ContainsFunc(rest, func(k []byte) bool { return bytes.Equal(k, key(removed)) }) {
				t.Errorf("after removing key %d, keys are %v", removed, rest)
			}
		})
	}
}

func TestPool_RotatesKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old, fresh := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
		sealed := func(c *gossip.Config) { c.Keys = [][]byte{old} }
		n := newNetwork()
		a, b := member(t, n, 1, sealed), member(t, n, 2, seeds(first), sealed)
		pools := []*gossip.Pool{a, b}
		time.Sleep(5 * time.Second)
		if err := a.UseKey(fresh); err == nil {
			t.Error("a key that is not installed was used")
		}
		for _, step := range []func(*gossip.Pool) error{
			func(p *gossip.Pool) error { return p.InstallKey(fresh) },
			func(p *gossip.Pool) error { return p.UseKey(fresh) },
			func(p *gossip.Pool) error { return p.RemoveKey(old) },
		} {
			for _, p := range pools {
				if err := step(p); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				expect(t, a, "server-1:alive server-2:alive")
			}
		}
		stale := member(t, n, 3, sealed)
		if _, err := stale.Join(first); err == nil {
			t.Error("the removed key still decrypts")
		}
	})
}

func TestStart_ReportsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := gossip.Start(gossip.Config{
		Bind: "nowhere", Advertise: "x", Keys: [][]byte{{1}}, Seeds: []string{" "},
		Tags: gossip.Tags{Region: strings.Repeat("r", 600)}, Timing: gossip.Timing{Probe: -1},
	})
	if err == nil {
		t.Fatal("Start accepted an invalid configuration")
	}
	for _, want := range []string{"member ID is required", "pool name is required", `"nowhere"`, `"x"`, "key 1 has 1 bytes", "seed must not be empty", "shorten", "probe interval"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not mention %s:\n%v", want, err)
		}
	}
}

func TestPool_OverLoopback(t *testing.T) {
	t.Parallel()
	start := func(id string, seeds ...string) *gossip.Pool {
		p, err := gossip.Start(gossip.Config{
			ID: id, Cluster: "prod", Bind: "127.0.0.1:0", Seeds: seeds,
			Keys: [][]byte{bytes.Repeat([]byte{7}, 16)},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	a := start("a")
	b := start("b", a.Addr())
	for deadline := time.Now().Add(20 * time.Second); ; {
		if seen(a) == "a:alive b:alive" && seen(b) == "a:alive b:alive" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("members see %q and %q", seen(a), seen(b))
		}
		select {
		case <-a.Events():
		case <-b.Events():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// A server without a cluster ID is admitted. If it later announces another cluster, both
// sides remove each other from their lists.
func TestPool_UnlistsMemberOfAnotherCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		tags := func(cluster string) gossip.Tags {
			return gossip.Tags{Raft: "10.0.0.9:4647", ClusterID: cluster, Oldest: 1, Newest: 2}
		}
		var log bytes.Buffer
		ours := func(c *gossip.Config) {
			c.Tags = tags("c1")
			c.Timing.Rejoin = 5 * time.Second
		}
		a := member(t, n, 1, ours, func(c *gossip.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		b := member(t, n, 2, seeds(first), ours)
		late := member(t, n, 3, func(c *gossip.Config) { c.Timing.Rejoin = 5 * time.Second })
		if _, err := late.Join(first); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		expect(t, b, "server-1:alive server-2:alive server-3:alive")
		if err := late.SetTags(tags("c2")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		expect(t, a, "server-1:alive server-2:alive")
		expect(t, b, "server-1:alive server-2:alive")
		expect(t, late, "server-3:alive")
		if n := strings.Count(log.String(), "of another cluster"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, log.String())
		}
		_ = late.Close() // an unlisted member does not count as failed either
		time.Sleep(2 * time.Minute)
		expect(t, a, "server-1:alive server-2:alive")
	})
}

// After a snapshot of another cluster was restored, servers adopt the new ID one after
// another.
func TestPool_KeepsMembersDuringClusterIDChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		tags := func(cluster string) gossip.Tags { return gossip.Tags{ClusterID: cluster, Oldest: 1, Newest: 2} }
		old := func(c *gossip.Config) {
			c.Tags = tags("old")
			c.Timing.Rejoin = 5 * time.Second
		}
		a, b := member(t, n, 1, old), member(t, n, 2, seeds(first), old)
		time.Sleep(10 * time.Second)
		for _, p := range []*gossip.Pool{a, b} {
			if err := p.SetTags(tags("new")); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				time.Sleep(time.Second)
				expect(t, a, "server-1:alive server-2:alive")
				expect(t, b, "server-1:alive server-2:alive")
			}
		}
		time.Sleep(2 * time.Minute)
		expect(t, a, "server-1:alive server-2:alive")
		expect(t, b, "server-1:alive server-2:alive")
	})
}

func TestPool_LogsRepeatedFailureOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := newNetwork()
		member(t, n, 1, seeds("10.0.0.2:7946"), func(c *gossip.Config) {
			c.Timing.Rejoin = 5 * time.Second
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		time.Sleep(25 * time.Minute)
		synctest.Wait() // nothing writes to the log
		if n := strings.Count(log.String(), "failed to join any seed"); n != 3 {
			t.Errorf("logged %d times in 25 minutes, want once per 10", n)
		}
	})
}

// Any host can send packets to the gossip port. The log reports them, and how many there
// were, in a few lines.
func TestPool_LogsGarbageInFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := newNetwork()
		a := member(t, n, 1, func(c *gossip.Config) {
			c.Keys = [][]byte{bytes.Repeat([]byte{1}, 32)}
			c.Timing.Rejoin = 5 * time.Second
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		rnd := rand.New(rand.NewPCG(1, 2))
		const packets = 20_000
		for i := range packets {
			from := n.host(fmt.Sprintf("10.9.%d.%d", i%250, i%7))
			b := make([]byte, 1+rnd.IntN(200))
			for j := range b {
				b[j] = byte(rnd.Uint32())
			}
			if i%3 == 0 { // a label of another pool
				b = append([]byte{244, 9}, fmt.Sprintf("pool-%04d%s", i%10_000, b)...)
			}
			if _, err := from.WriteTo(b, first); err != nil {
				t.Fatal(err)
			}
			if i%500 == 0 {
				synctest.Wait() // the packets are processed
			}
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait() // nothing writes to the log
		lines := strings.Count(log.String(), "\n")
		counted := 0
		for _, m := range regexp.MustCompile(`count=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
			c, _ := strconv.Atoi(m[1])
			counted += c
		}
		if lines == 0 || lines > 40 || counted < packets-lines {
			t.Errorf("%d lines that count %d of %d packets:\n%s", lines, counted, packets, log.String())
		}
		expect(t, a, "server-1:alive")
	})
}
