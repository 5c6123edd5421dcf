// Command guest is a policy that fails as its environment requests. Unlike the guests of
// guests_test.go it uses sdk/serve, as policy authors do.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
	"github.com/cede-scheduler/cede/sdk/serve"
)

func init() { serve.Register(func() policy.Policy { return &moody{} }) }

func main() { serve.Serve() }

// moody implements only PriorityDelta.
type moody struct{ text string }

func (m *moody) Info() policy.Info { return policy.Info{Name: "moody", Delta: rules.Delta} }

func (m *moody) Settings() []policy.Setting {
	return []policy.Setting{{Name: "text", Kind: policy.Text, Default: "fine"}}
}

func (m *moody) Configure(c *policy.Config) error {
	if m.text = c.Text("text"); m.text == "refused" {
		return errors.New("text must not be refused")
	}
	return nil
}

func (m *moody) PriorityDelta(_ *policy.Candidates, gap []int32, recheck *policy.Recheck) error {
	switch os.Getenv("MOOD") {
	case "index":
		gap[len(gap)+1] = 1
	case "nil":
		m = nil
		gap[0] = int32(len(m.text))
	case "map":
		both := map[int]int{}
		go func() {
			for {
				both[1]++
			}
		}()
		for {
			both[1]++
		}
	case "objects":
		return errors.New(m.text)
	case "talks":
		for level := range abi.LevelError + 1 {
			serve.Log(int32(level), fmt.Sprint("line of level ", level))
		}
		fmt.Println("to standard output")
		fmt.Fprintln(os.Stderr, "to standard error")
	case "chatters":
		for i := range 10_000 {
			serve.Log(abi.LevelInfo, fmt.Sprint("line ", i))
		}
	}
	for i := range gap {
		gap[i] = int32(i)
	}
	recheck.At(42)
	return nil
}
