// Command crash is a Go guest that misbehaves as its configuration requests.
package main

import (
	"errors"
	"math/rand/v2"
	"runtime"
	_ "unsafe" // for linkname

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() {
	serve.Version = "0.1 \x1b[2J"
	serve.Register(func() policy.Policy { return &crash{} })
}

func main() { serve.Serve() }

type crash struct {
	mode string
	kept [][]byte
	seen map[int]int // nil
}

func (*crash) Info() policy.Info { return policy.Info{Name: "crash", Columns: policy.UseColumns} }

func (*crash) Settings() []policy.Setting {
	return []policy.Setting{{Name: "mode", Kind: policy.Text, Default: "none"}}
}

func (c *crash) Configure(config *policy.Config) error {
	c.mode = config.Text("mode")
	switch c.mode {
	case "objects":
		return errors.New("I do not like this mode")
	case "panics when configured":
		panic("configured wrongly")
	}
	return nil
}

func (c *crash) ScoreVictims(in *policy.Candidates, out *policy.VictimScores) error {
	switch c.mode {
	case "error":
		return errors.New("I cannot\ndecide \x1b[2J")
	case "panic":
		panic("my own words")
	case "nil":
		var in *policy.Candidates
		out.Tier[0] = in.Now
	case "index":
		out.Tier[in.Rows.Len()] = 1
	case "map":
		c.seen[in.Rows.Len()] = 1
	case "conversion":
		out.Tier[0] = any(c.mode).(int64)
	case "memory":
		for {
			c.kept = append(c.kept, make([]byte, 1<<20))
		}
	case "garbage":
		for range 500 {
			c.kept = [][]byte{make([]byte, 32<<10)}
		}
	case "deadlock":
		<-make(chan int)
	case "recursion":
		out.Tier[0] = deeper(1)
	case "spin":
		for {
			runtime.Gosched()
		}
	case "sleep":
		sleep(3600e9)
	case "goroutines":
		done := make(chan int64)
		for i := range 8 {
			go func() { done <- int64(i) }()
		}
		for range 8 {
			out.Tier[0] += <-done
		}
	case "prints":
		println("to standard error")
	case "logs":
		serve.Log(2, "to the log \x1b[2J")
	case "floods":
		for range 1000 {
			serve.Log(1, "again")
		}
	case "clock":
		seconds, ns, mono := now()
		for range 1000 {
			if s, n, m := now(); s != seconds || n != ns || m != mono {
				return errors.New("time passes")
			}
		}
		out.Tier[0] = seconds*1e9 + int64(ns)
	case "chance":
		out.Tier[0] = rand.Int64()
		for k := range map[int64]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true} {
			out.Tier[0] = out.Tier[0]*31 + k
		}
	}
	return nil
}

// Package time needs functions that policies do not have.

//go:linkname now time.now
func now() (seconds int64, ns int32, monotonic int64)

//go:linkname sleep time.Sleep
func sleep(ns int64)

func deeper(n int64) int64 { return deeper(n+1) + n }
